//! `rperf top PID`: where the time of a running program goes, interval by interval. Called by
//! `run`, on Ruby's main thread.

mod page;
mod rates;

use super::process;
use crate::report::screen::Screen;
use crate::{FAILURE, Refusal, say};
use page::Page;
use rates::{Interval, Methods};
use rperf_live::client::{AskError, Client};
use rperf_live::delta::BadDelta;
use rperf_live::hello::Hello;
use rperf_live::mirror::Mirror;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The port has nothing that could be watched.
const NO_SESSION: u16 = 409;
/// It has nothing to answer with yet.
const IDLE: u16 = 503;

/// How long the port may wait for the VM: a busy thread may have to end its time slice.
const WAIT: Duration = Duration::from_secs(1);

/// How long a program may take from the end of a session to the begin of the next one.
const BETWEEN_SESSIONS: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile.
const AGAIN: Duration = Duration::from_millis(50);

/// After so long it says that it waits for the program.
const SILENCE: Duration = Duration::from_secs(2);

/// For how long nothing is asked at most: the port lets go of clients that are silent.
const REST: Duration = Duration::from_secs(20);

/// Pages of one pull at most: a table has fewer rows.
const MAX_PAGES: usize = 1 << 14;

/// Options of `rperf top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// The program's process
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: i32,
    /// Print one table and end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many tables and end
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between two tables (0.1 to 3600)
    #[arg(long, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print one JSON object for each interval, with times in nanoseconds
    #[arg(long)]
    pub json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "seconds are a number".to_string())?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("0.1 to 3600 seconds are possible".into()),
    }
}

/// Prints the tables. Returns the exit status.
pub fn run(args: &TopArgs) -> Result<i32, Refusal> {
    let mut client = process::connect(args.pid)?;
    let hello = client
        .hello()
        .map_err(|error| process::failed(args.pid, &error))?;
    let mut watch = Watch {
        args,
        client,
        hello,
        mirror: Mirror::default(),
        printed: 0,
    };
    match watch.follow() {
        Ok(()) => Ok(0),
        // What it was asked for is printed already: that the program ends isn't its failure.
        Err(End::Asking(error)) if watch.printed > 0 && has_ended(&error) => {
            say(&watch.reason(&error));
            Ok(0)
        }
        Err(End::Asking(error)) => Err(refusal(watch.reason(&error))),
        Err(End::Printing(error)) => Err(refusal(format!("can't write to stdout: {error}"))),
    }
}

fn refusal(message: String) -> Refusal {
    Refusal {
        message,
        status: FAILURE,
    }
}

/// Why it ends before there are enough tables.
enum End {
    /// The program doesn't answer.
    Asking(AskError),
    /// Nothing can be printed.
    Printing(io::Error),
}

impl From<AskError> for End {
    fn from(error: AskError) -> Self {
        End::Asking(error)
    }
}

fn has_ended(error: &AskError) -> bool {
    matches!(
        error,
        AskError::Closed
            | AskError::Refused {
                status: NO_SESSION,
                ..
            }
    )
}

/// A program that is watched.
struct Watch<'a> {
    args: &'a TopArgs,
    client: Client,
    hello: Hello,
    mirror: Mirror,
    printed: u64,
}

/// What a pull has brought.
struct Pulled {
    methods: Methods,
    is_fresh: bool,
    /// The profile has begun anew, or is new to us.
    is_first: bool,
}

impl Watch<'_> {
    /// Prints until there are enough tables, or nobody reads them. An error is also the end of the
    /// program, or of its session.
    fn follow(&mut self) -> Result<(), End> {
        self.begin()?;
        let mut last = self.mirror.facts.clone();
        let mut next = Instant::now();
        loop {
            next = (next + self.args.interval).max(Instant::now());
            let pulled = self.pull_until(next)?;
            let facts = self.mirror.facts.clone();
            if pulled.is_first {
                let (mode, frequency) = (&facts.mode, facts.frequency);
                let pid = self.args.pid;
                say(&format!(
                    "{pid}: the profile begins anew ({mode}, {frequency} Hz)"
                ));
                last = facts;
                continue;
            }
            let interval = Interval::new(pulled.methods, &last, &facts, pulled.is_fresh);
            last = facts;
            let is_read = self.print(&interval).map_err(End::Printing)?;
            if !is_read || self.is_enough() {
                return Ok(());
            }
        }
    }

    /// The first pulls, until all that came before is there, which isn't shown.
    fn begin(&mut self) -> Result<(), AskError> {
        let (since, mut is_told) = (Instant::now(), false);
        loop {
            match self.pull() {
                Ok(pulled) if pulled.is_fresh => return Ok(()),
                Ok(_) | Err(AskError::Refused { status: IDLE, .. }) => {}
                Err(error) => return Err(error),
            }
            if since.elapsed() >= SILENCE && !std::mem::replace(&mut is_told, true) {
                let pid = self.args.pid;
                say(&format!(
                    "{pid} runs no Ruby code just now; waiting until it does"
                ));
            }
        }
    }

    /// What has come until `next`, or until the profile begins anew.
    fn pull_until(&mut self, next: Instant) -> Result<Pulled, AskError> {
        let mut methods = Methods::default();
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            sleep(rest.min(REST));
            let mut pulled = self.pull_patiently()?;
            methods.add(&pulled.methods);
            if pulled.is_first || rest <= REST {
                pulled.methods = methods;
                return Ok(pulled);
            }
        }
    }

    /// [`Watch::pull`]; where a session has ended, another one may begin in a moment, and be without
    /// Ruby code that runs.
    fn pull_patiently(&mut self) -> Result<Pulled, AskError> {
        let until = Instant::now() + BETWEEN_SESSIONS;
        loop {
            match self.pull() {
                Err(AskError::Refused { status: IDLE, .. }) => {}
                Err(AskError::Refused {
                    status: NO_SESSION, ..
                }) if Instant::now() < until => sleep(AGAIN),
                result => return result,
            }
        }
    }

    /// All pages of what has changed.
    fn pull(&mut self) -> Result<Pulled, AskError> {
        let start = self.mirror.facts.start_ns;
        let mut before = None;
        let mut methods = Methods::default();
        for _ in 0..MAX_PAGES {
            let delta = self.client.delta(self.mirror.cursor(), WAIT)?;
            let (more, is_fresh) = (delta.changes.more, delta.freshness.is_fresh);
            if delta.changes.reset {
                // Rows may have been added up: by methods, the sums are what they were.
                before.get_or_insert_with(|| Methods::of(&self.mirror, self.mirror.rows()));
            }
            let grown = self.mirror.take(delta)?;
            if before.is_none() {
                methods.add(&Methods::of(&self.mirror, grown));
            }
            if !more {
                let is_first = self.mirror.facts.start_ns != start;
                if let Some(before) = before {
                    methods = Methods::of(&self.mirror, self.mirror.rows());
                    methods.subtract(&before);
                }
                return Ok(Pulled {
                    methods,
                    is_fresh,
                    is_first,
                });
            }
        }
        Err(BadDelta.into())
    }

    /// Returns whether somebody still reads.
    fn print(&mut self, interval: &Interval) -> io::Result<bool> {
        let page = Page {
            pid: self.args.pid,
            program: &self.hello.program,
            facts: &self.mirror.facts,
            interval,
        };
        let text = match self.args.json {
            true => format!("{}\n", page.to_json()),
            false => page.table(&Screen::stdout(false), self.printed > 0),
        };
        self.printed += 1;
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes());
        match written.and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn is_enough(&self) -> bool {
        let wanted = if self.args.once {
            Some(1)
        } else {
            self.args.count
        };
        wanted.is_some_and(|wanted| self.printed >= wanted)
    }

    /// Why there is nothing more to be seen.
    fn reason(&self, error: &AskError) -> String {
        let pid = self.args.pid;
        match error {
            AskError::Refused {
                status: NO_SESSION, ..
            } if self.printed > 0 => format!("{pid}: the profiling session has ended"),
            AskError::Silent if process::is_stopped(pid) => {
                format!("{pid} was stopped (SIGSTOP): nothing can be asked until SIGCONT")
            }
            error => process::failed(pid, error).message,
        }
    }
}

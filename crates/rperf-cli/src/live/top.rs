//! `rperf top`: where the time of running programs goes, interval by interval. Called by `run`, on
//! Ruby's main thread.

mod feed;
mod group;
mod page;
mod rates;
mod screens;
mod watched;

use super::choose::Choice;
use super::process;
use crate::report::screen::Screen;
use crate::{FAILURE, Refusal, say};
use group::Group;
use page::{Page, table_of_several};
use rates::{Interval, Sums};
use rperf_live::client::AskError;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the port may wait for the VM: a busy thread may have to end its time slice.
const WAIT: Duration = Duration::from_secs(1);

/// After so long it says that it waits for a program.
const SILENCE: Duration = Duration::from_secs(2);

/// For how long nothing is asked at most: the port lets go of clients that are silent.
const REST: Duration = Duration::from_secs(20);

/// Options of `rperf top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// The programs.
    #[command(flatten)]
    pub choice: Choice,
    /// Print one table and end
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Print so many tables and end
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Seconds between two tables (0.1 to 3600)
    #[arg(long, value_name = "S", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print one JSON object for each interval and program, with times in nanoseconds
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

/// Shows the screens, or prints the tables. Returns the exit status.
pub fn run(args: &TopArgs) -> Result<i32, Refusal> {
    let wants_tables = args.once || args.json || args.count.is_some();
    if !wants_tables && screens::are_possible() {
        return screens::run(args);
    }
    let mut tables = Tables {
        args,
        group: Group::connect(&args.choice, |_| Sums::default())?,
        printed: 0,
    };
    let end = tables.follow();
    tables.say_lines();
    match end {
        Ok(()) => Ok(0),
        // What it was asked for is printed already: that the program ends isn't its failure.
        Err(End::Asking(pid, error @ AskError::Closed)) if tables.printed > 0 => {
            say(&process::failed(pid, &error).message);
            Ok(0)
        }
        Err(End::Asking(pid, error)) => Err(process::failed(pid, &error)),
        Err(End::Printing(error)) => Err(Refusal {
            message: format!("can't write to stdout: {error}"),
            status: FAILURE,
        }),
    }
}

/// Why it ends before there are enough tables.
enum End {
    /// The last program can't be watched any more.
    Asking(i32, AskError),
    /// Nothing can be printed.
    Printing(io::Error),
}

/// The tables that are printed.
struct Tables<'a> {
    args: &'a TopArgs,
    group: Group<Sums>,
    printed: u64,
}

impl Tables<'_> {
    /// Prints until there are enough tables, or nobody reads them.
    fn follow(&mut self) -> Result<(), End> {
        while !self.group.is_ready(SILENCE) {
            self.round()?;
            self.group.complain(SILENCE);
            self.say_lines();
        }
        // What came before isn't shown.
        self.take_intervals();
        let mut next = Instant::now();
        loop {
            next = (next + self.args.interval).max(Instant::now());
            self.rest_until(next)?;
            let intervals = self.take_intervals();
            if intervals.is_empty() {
                continue;
            }
            let is_read = self.print(&intervals).map_err(End::Printing)?;
            if !is_read || self.is_enough() {
                return Ok(());
            }
        }
    }

    fn rest_until(&mut self, next: Instant) -> Result<(), End> {
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            sleep(rest.min(REST));
            self.round()?;
            if rest <= REST {
                return Ok(());
            }
        }
    }

    fn round(&mut self) -> Result<(), End> {
        let round = self
            .group
            .round(WAIT, |member, news| member.sums.note(news));
        self.say_lines();
        round.map_err(|(pid, error)| End::Asking(pid, error))
    }

    fn say_lines(&mut self) {
        for line in self.group.take_lines() {
            say(&line);
        }
    }

    /// Of each program of which something is known: its place, and its interval.
    fn take_intervals(&mut self) -> Vec<(usize, Interval)> {
        let members = self.group.members.iter_mut().enumerate();
        let known = members.filter_map(|(place, member)| {
            let interval = member.sums.take_interval(&member.program.mirror.facts)?;
            Some((place, interval))
        });
        known.collect()
    }

    /// Returns whether somebody still reads.
    fn print(&mut self, intervals: &[(usize, Interval)]) -> io::Result<bool> {
        let page = |(place, interval): (usize, _)| {
            let program = &self.group.members[place].program;
            Page {
                pid: program.pid,
                program: &program.hello.program,
                facts: &program.mirror.facts,
                interval,
            }
        };
        let pages = intervals.iter().map(|(place, interval)| (*place, interval));
        let pages: Vec<_> = pages.map(page).collect();
        let (screen, follows) = (Screen::stdout(false), self.printed > 0);
        let text = match &*pages {
            pages if self.args.json => {
                let lines = pages.iter().map(|page| format!("{}\n", page.to_json()));
                lines.collect()
            }
            [page] => page.table(&screen, follows),
            pages => {
                let all = Interval::rates(pages.iter().map(|page| page.interval));
                table_of_several(pages, &all, &screen, follows)
            }
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
}

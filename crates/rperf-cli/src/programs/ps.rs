//! `rperf ps`: the Ruby programs that have a port. Called by `run`, on the main thread.

use super::choose::Selection;
use super::users::UserArgs;
use crate::FAILURE;
use crate::Refusal;
use crate::refusal::say;
use crate::report::screen::Screen;
use rperf_format::table::{Column, Row, Table};
use rperf_protocol::hello::{Beginner, Hello};
use rperf_report::terminal_text::shown;
use rperf_watch::failure::{AskError, Failure};
use rperf_watch::process::is_busy;
use rperf_watch::programs::{Found, side_by_side, without_number};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// For how long CPU time is measured.
const INTERVAL: Duration = Duration::from_millis(100);

/// The columns in front of the program, and how much they weigh where there is little room; 0: they
/// stay.
const COLUMNS: [(&str, u8); 6] = [
    ("PID", 0),
    ("UP", 2),
    ("CPU", 5),
    ("RUBY", 1),
    ("PORT", 4),
    ("SESSION", 3),
];

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  RPERF_LISTEN=1 bundle exec puma      a program with a port, and rperf in its Gemfile
  rperf ps                             this program, and its forked workers

A port is a Unix socket where a program's user, and root, can ask what it does. It opens
the port itself: with RPERF_LISTEN=1, Rperf.listen, or under 'rperf record --listen'.

Run 'rperf help' for full documentation.";

/// Options of `rperf ps`.
#[derive(Debug, clap::Args)]
pub struct PsArgs {
    /// Print one JSON object, with times in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Only programs that match this regular expression in the last column
    #[arg(long = "match", value_name = "REGEX")]
    pub matching: Option<String>,
    /// Whose programs are listed.
    #[command(flatten)]
    pub users: UserArgs,
}

/// How a program's port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortState {
    /// A thread of the program runs.
    Busy,
    /// All of them wait.
    Idle,
    /// The program is stopped.
    Stopped,
    /// Nothing comes.
    NoAnswer,
    /// Its user has too many.
    NotAsked,
    /// The program speaks another version of the port's protocol.
    OtherVersion,
}

impl PortState {
    fn name(self) -> &'static str {
        match self {
            PortState::Busy => "busy",
            PortState::Idle => "idle",
            PortState::Stopped => "stopped",
            PortState::NoAnswer => "no answer",
            PortState::NotAsked => "not asked",
            PortState::OtherVersion => "other version",
        }
    }
}

/// A program with a port.
struct Listening {
    found: Found,
    state: PortState,
    /// Share of one CPU.
    cpu: Option<f64>,
}

/// Prints the programs. Returns the exit status.
pub fn run(args: &PsArgs) -> Result<i32, Refusal> {
    let selection = Selection::of(args.matching.as_deref(), &args.users)?;
    let listing = selection.listing(|_| true);
    let hint = selection.hint(&listing);
    let programs = listing.programs.into_iter().map(Listening::new);
    let mut programs: Vec<_> = programs.collect();
    if programs.iter().any(|it| it.hello().is_some()) {
        thread::sleep(INTERVAL);
    }
    side_by_side(&mut programs, Listening::measure);
    let screen = Screen::stdout(false);
    let text = match args.json {
        true => format!(
            "{}\n",
            json!({ "version": 1, "programs": as_json(&programs) })
        ),
        false if programs.is_empty() && selection.has_pattern() => "no program matches\n".into(),
        false => table(&programs, &screen),
    };
    let written = screen.print(&text);
    // Who reads JSON counts on an empty stderr.
    if let Some(hint) = hint.filter(|_| !args.json) {
        say(&hint);
    }
    say_without_number();
    written.map(|()| 0).map_err(|error| Refusal {
        message: format!("can't write the list: {error}"),
        status: FAILURE,
    })
}

/// A line about programs that share the directory of sockets, as containers may, and not their
/// process IDs.
fn say_without_number() {
    let who = match without_number() {
        0 => return,
        1 => "a program that has its port here runs in another PID namespace".into(),
        count => format!("{count} programs that have their port here run in other PID namespaces"),
    };
    say(&format!(
        "{who} and can't be asked from this one ('rperf help containers')"
    ));
}

impl Listening {
    fn new(found: Found) -> Self {
        let state = match &found.program {
            Err(Failure::Stopped) => PortState::Stopped,
            Err(Failure::Asking(AskError::OtherProtocol(_))) => PortState::OtherVersion,
            Err(Failure::TooMany(_)) => PortState::NotAsked,
            _ => PortState::NoAnswer,
        };
        Listening {
            found,
            state,
            cpu: None,
        }
    }

    fn hello(&self) -> Option<&Hello> {
        self.found.program.as_ref().ok().map(|it| &it.hello)
    }

    fn measure(&mut self) {
        let Ok(program) = &mut self.found.program else {
            return;
        };
        let (clock_ns, cpu_ns) = (program.hello.clock_ns, program.hello.cpu_ns);
        let Ok(after) = program.renew() else {
            return;
        };
        let elapsed = after.clock_ns.saturating_sub(clock_ns);
        let used = after.cpu_ns.saturating_sub(cpu_ns);
        self.cpu = (elapsed > 0).then(|| used as f64 / elapsed as f64);
        self.state = match is_busy(self.found.process.pid) {
            true => PortState::Busy,
            false => PortState::Idle,
        };
    }

    fn cells(&self) -> [String; 6] {
        let hello = self.hello();
        let of_hello = |text: fn(&Hello) -> String| hello.map_or_else(|| "-".into(), text);
        [
            self.found.process.pid.to_string(),
            of_hello(|hello| hello.uptime_ns.map_or_else(|| "-".into(), duration)),
            self.cpu
                .map_or_else(|| "-".into(), |cpu| format!("{:.0}%", cpu * 100.0)),
            of_hello(|hello| hello.ruby.clone()),
            self.state.name().into(),
            of_hello(|hello| session(hello).unwrap_or_else(|| "-".into())),
        ]
    }

    fn to_json(&self) -> Value {
        let hello = self.hello();
        json!({
            "pid": self.found.process.pid,
            "socket": shown(&self.found.path.to_string_lossy()),
            "uid": self.found.uid,
            "state": self.state.name(),
            "program": self.found.name(),
            "ruby": hello.map(|hello| &hello.ruby),
            "rperf": hello.map(|hello| &hello.rperf),
            "uptime_ns": hello.and_then(|hello| hello.uptime_ns),
            "cpu_ns": hello.map(|hello| hello.cpu_ns),
            "cpu": self.cpu,
            "tcp": hello.and_then(|hello| hello.tcp),
            "live": hello.and_then(|it| it.session.as_ref().map(|_| it.beginner.is_clients())),
            "session": hello.and_then(|hello| hello.session.as_ref()),
        })
    }
}

fn session(hello: &Hello) -> Option<String> {
    let session = hello.session.as_ref()?;
    let live = match hello.beginner {
        Beginner::Clients => "live, ",
        Beginner::Program => "",
    };
    Some(match session.is_trace() {
        true => session.mode.to_string(),
        false => format!("{live}{}, {} Hz", session.mode, session.frequency),
    })
}

fn as_json(programs: &[Listening]) -> Vec<Value> {
    programs.iter().map(Listening::to_json).collect()
}

fn table(programs: &[Listening], screen: &Screen) -> String {
    if programs.is_empty() {
        return screen.wrapped(
            "no Ruby program with a port; start one with RPERF_LISTEN=1 (and rperf in its \
             Gemfile)\n",
        );
    }
    let mut table = Table::new(COLUMNS.map(|(heading, weight)| match weight {
        0 => Column::new(heading).to_the_left(),
        weight => Column::weighing(heading, weight).to_the_left(),
    }))
    .with_names("PROGRAM");
    for program in programs {
        table.push(Row {
            cells: program.cells().into(),
            name: program.found.name(),
            ..Row::default()
        });
    }
    screen.table(&table)
}

/// In its two largest units.
fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (0, _, _) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_two_largest_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m00s"),
            (3661, "1h01m"),
            (86_399, "23h59m"),
            (2 * 86_400 + 3600, "2d01h"),
        ] {
            assert_eq!(duration(seconds * 1_000_000_000), text);
        }
    }
}

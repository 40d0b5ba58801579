//! The command line as clap sees it: names, defaults and help, no logic.
//! Read by `run` only; the settings of rperf-session check the values, also those with a dash in
//! front, for which clap has no message of one line.

use crate::diff::{self, DiffArgs};
use crate::memory::heap::{self, HeapArgs};
use crate::memory::leak::{self, LeakArgs};
use crate::memory::{self, MemoryArgs};
use crate::programs::choose::Choice;
use crate::programs::ps::{self, PsArgs};
use crate::programs::stacks::StacksArgs;
use crate::programs::top::TopArgs;
use crate::programs::users::UserArgs;
use crate::report::ReportArgs;
use crate::why::{self, WhyArgs};
use clap::{Parser, builder::Styles};
use flags::{AttachFlags, PageFlags, PushFlags, RecordFlags, TraceFlags};
use std::ffi::OsString;

pub(crate) mod flags;

/// What is said of the commands that run another one ends with their exit status.
macro_rules! with_status {
    ($notes:literal) => {
        concat!(
            $notes,
            "\
Exit status: the program's own; 1 if it succeeded but nothing could be profiled, or
its profile could not be read or written; 2 for wrong options; 3 if it succeeded with
more memory than --max-rss allows; 126 or 127 if the command can't be run or found.

Run 'rperf help' for full documentation."
        )
    };
}

const EXAMPLES: &str = "\
Examples:
  rperf record ruby app.rb            a profile in rperf.data
  rperf report                        what is in it, in a browser
  rperf diff old.pb.gz new.pb.gz      what got slower, and what faster
  rperf stat ruby app.rb              where the time went, on one page
  rperf exec ruby app.rb              the same with tables of methods
  rperf trace ruby app.rb             how often each method was called, in rperf.data

Everything from the first word that isn't an option is the command. It runs with its
own input, output, exit status and signals. Give -- in front of a command that
begins with a dash. Ruby processes that the command starts are profiled with it.

Run 'rperf help' for full documentation.";

const RECORD_NOTES: &str = with_status!(
    "\
Examples:
  rperf record ruby app.rb
  rperf record -m wall -o app.pb.gz bundle exec rake
  rperf record -p --lines ruby -Ilib -e 'require \"app\"; App.run'

The format follows the file's extension: .collapsed and .txt are collapsed stacks
and text, everything else is pprof. The file is written when the program ends: by
itself, by exit! or an exception, by INT, TERM or another signal that Ruby handles.

"
);

const TRACE_NOTES: &str = with_status!(
    "\
Examples:
  rperf trace ruby app.rb
  rperf trace -p --calls all ruby app.rb
  rperf trace --calls count -o calls.pb.gz bundle exec rake

Every call is counted and timed, and what the tracing itself costs is taken out of the
times. The program runs slower, without YJIT's code. 'rperf help tracing' says when to
trace and when to sample.

"
);

const STAT_NOTES: &str = with_status!(
    "\
Examples:
  rperf stat ruby app.rb
  rperf stat --report -o app.pb.gz ruby app.rb

The figures go to stderr when the program ends.

"
);

const EXEC_NOTES: &str = with_status!(
    "\
Examples:
  rperf exec ruby app.rb
  rperf exec -m cpu -o app.pb.gz bundle exec rake

It is 'rperf stat --report': figures and tables go to stderr when the program ends.

"
);

const REPORT_NOTES: &str = "\
Examples:
  rperf report                                     rperf.data, in a browser
  rperf report --html -o app.html app.pb.gz        the same page as a file
  rperf report --top                               the methods with the most
  rperf report --tree --focus Order app.pb.gz      the calls that lead to Order
  rperf report --callers 'Array#each'              who calls it, and from which lines
  rperf report --annotate app/models/order.rb      its source, with the time of each line
  rperf report --by label:endpoint                 which requests take it
  rperf report --tagfocus 'endpoint=GET /users' -o users.collapsed
  rperf report --live 4711                         snapshots of a running program

Any pprof file can be read, with all its values. The filters have the meanings that
they have in pprof; shares are of the whole profile, whatever the filters leave.

Exit status: 0; 1 if the output can't be written; 2 for wrong options and files that
can't be read.

Run 'rperf help' for full documentation.";

const ATTACH_NOTES: &str = "\
Examples:
  rperf ps                                         the programs that can be asked
  rperf attach 4711 --duration 30 -o app.pb.gz     30 s of one of them
  rperf attach 4711 4712                           two workers of a server, in rperf.data
  rperf attach --match 'puma: cluster worker'      all of its workers

If the program is being profiled already, the profile is what its session collects
meanwhile. If the program begins a session of its own, or ends, the profile is of the
time before.

Exit status: 0; 1 if a program couldn't be profiled, or the profile not be written; 2
for wrong options.

Run 'rperf help running-program' for more.";

const SNAPSHOT_NOTES: &str = "\
Examples:
  rperf snapshot 4711 -o now.pb.gz     what Rperf.start or 'rperf record' has so far

The session goes on, and loses nothing.

Exit status: 0; 1 if there is no session, or the profile can't be written; 2 for wrong
options.

Run 'rperf help running-program' for more.";

const STACKS_NOTES: &str = "\
Examples:
  rperf ps                  the programs that can be asked
  rperf stacks 4711         the stacks of all threads, and what each waits for

Exit status: 0; 1 if the program can't be asked, or Ruby's VM didn't answer; 2 for
wrong options.

Run 'rperf help running-program' for more.";

const TOP_NOTES: &str = "\
Examples:
  rperf top 4711                      screens on a terminal, else a table every second
  rperf top --match puma              all of its processes, and those that come later
  rperf top --once --interval 10 4711
  rperf top --json -n 60 4711 | jq -c '.methods[0] | [.name, .self_ns]'
  rperf top bundle exec puma          starts the command and watches its Rubies
  rperf top app.pb.gz                 the same screens on a saved profile

The program must have a port ('rperf ps --help' says what that is). If it isn't being
profiled, rperf top begins a session (wall mode, 1000 Hz), which ends with the command.

Exit status: 0, also if the program ends after the first table; 1 if it can't be
watched; 2 for wrong options; that of the command, if it starts one.

Run 'rperf help running-program' for more.";

const SERVE_NOTES: &str = "\
Examples:
  rperf serve                                 all programs that 'rperf ps' lists
  rperf serve --user app                      as root: those of this user
  rperf serve --match puma --http 127.0.0.1:6061
  rperf serve --http /run/user/1000/rperf.sock
  curl -H @header -o p.pb.gz \"http://127.0.0.1:6060/debug/pprof/profile?seconds=10\"

Each request is answered with one profile of the programs that are there then, with %pid
and %process as labels. Over TCP it needs the token in RPERF_LISTEN_TOKEN, or in the file that
RPERF_LISTEN_TOKEN_FILE names, or else one that is made, and is in the file that the first
line names. 'rperf help fleets' says how the file 'header' is made of it.

Exit status: 0 after Ctrl-C or SIGTERM; 1 if the address can't be had; 2 for wrong options.

Run 'rperf help fleets' for more.";

const PUSH_NOTES: &str = "\
Examples:
  rperf push --to http://127.0.0.1:4040 --match puma --service shop
  rperf push --to https://profiles.example --every 60 -f 49
  RPERF_PUSH_AUTHORIZATION=\"Bearer ...\" rperf push --to https://profiles.example
  rperf push --otlp http://127.0.0.1:4318 --match puma --service shop

The programs that match then are profiled all the time, one stretch after the other, and
each stretch is sent as one profile. If it can't be sent, four wait, and older ones are
dropped; the programs notice nothing.

Exit status: 0 after Ctrl-C or SIGTERM; 1 if a profile was lost, or none was sent; 2 for
wrong options.

Run 'rperf help fleets' for more.";

/// A sampling profiler for Ruby programs.
#[derive(Debug, Parser)]
#[command(
    name = "rperf",
    version,
    after_help = EXAMPLES,
    styles = Styles::styled(),
    disable_help_subcommand = true
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

impl Args {
    /// The arguments in the command line. Options of `rperf top` may come after the processes or
    /// files, but not after a command, because there they belong to the command.
    pub fn of(mut line: Vec<OsString>) -> Result<Self, clap::Error> {
        let mut words = Vec::new();
        loop {
            let mut args = Self::try_parse_from(&line)?;
            let next = match &mut args.subcommand {
                Subcommand::Top(top) => top.with_options_in_front(&line, &mut words),
                _ => None,
            };
            match next {
                Some(next) => line = next,
                None => return Ok(args),
            }
        }
    }
}

/// What rperf can do.
#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Run a command and write its profile to a file
    #[command(after_help = RECORD_NOTES)]
    Record(RecordArgs),
    /// Run a command and count and time each of its calls
    #[command(after_help = TRACE_NOTES)]
    Trace(TraceArgs),
    /// Look at profiles: in a browser, or as tables, the call tree, callers, source lines
    #[command(after_help = REPORT_NOTES)]
    Report(ReportArgs),
    /// Tell what the slow requests have that the usual ones don't
    #[command(after_help = why::NOTES, override_usage = why::USAGE)]
    Why(WhyArgs),
    /// Compare two profiles, or two groups of them, and tell change from noise
    #[command(after_help = diff::NOTES)]
    Diff(DiffArgs),
    /// Run a command and print where its time went
    #[command(after_help = STAT_NOTES)]
    Stat(StatArgs),
    /// Run a command and print where its time went, with tables of methods
    #[command(after_help = EXEC_NOTES)]
    Exec(PageArgs),
    /// List the running Ruby programs that have a port
    #[command(after_help = ps::NOTES)]
    Ps(PsArgs),
    /// Print what each thread of a running program does
    #[command(after_help = STACKS_NOTES)]
    Stacks(StacksArgs),
    /// Print what the resident memory of a running program is made of
    #[command(after_help = memory::NOTES)]
    Memory(MemoryArgs),
    /// Print which objects a running program has, and what holds them
    #[command(after_help = heap::NOTES)]
    Heap(HeapArgs),
    /// Tell which classes and lines of a running program make its memory grow
    #[command(after_help = leak::NOTES)]
    Leak(LeakArgs),
    /// Show where the time of running programs goes
    #[command(after_help = TOP_NOTES)]
    Top(TopArgs),
    /// Profile running programs for a while
    #[command(after_help = ATTACH_NOTES)]
    Attach(AttachArgs),
    /// Write what a profiling session in a running program has so far
    #[command(after_help = SNAPSHOT_NOTES)]
    Snapshot(SnapshotArgs),
    /// Send the profiles of running programs to Pyroscope, again and again
    #[command(after_help = PUSH_NOTES)]
    Push(PushArgs),
    /// Serve the profiles of running programs to Go's tools and collectors
    #[command(after_help = SERVE_NOTES)]
    Serve(ServeArgs),
    /// Print a page of the guide, or the help of a command
    Help(HelpArgs),
}

/// Options of `rperf record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Options of all commands that run another one.
    #[command(flatten)]
    pub settings: RecordFlags,
    /// Print a text profile to stdout instead of writing a file
    #[arg(short, long)]
    pub print: bool,
    /// Run the command so many times, and write each profile to its own file: app.1.pb.gz
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub runs: Option<String>,
    /// The command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The command that another one runs, and what it may take.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Exit with 3 if the peak RSS of a process was above this, such as 500M or 1G; the largest
    /// one counts, of the command and all that it waited for
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub max_rss: Option<String>,
    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Options of `rperf trace`.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// Options of settings.
    #[command(flatten)]
    pub settings: TraceFlags,
    /// Print a text profile to stdout instead of writing a file
    #[arg(short, long)]
    pub print: bool,
    /// The command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of `rperf stat`.
#[derive(Debug, clap::Args)]
pub struct StatArgs {
    /// Add tables of the hottest methods
    #[arg(long)]
    pub report: bool,
    /// Options that `exec` has too.
    #[command(flatten)]
    pub page: PageArgs,
}

/// Options of `rperf exec`, and of `rperf stat`.
#[derive(Debug, clap::Args)]
pub struct PageArgs {
    /// Options of all commands that run another one.
    #[command(flatten)]
    pub settings: PageFlags,
    /// Count the time of idle threads, which wait for work, as all other
    #[arg(long)]
    pub idle: bool,
    /// The command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What `rperf help` takes.
#[derive(Debug, clap::Args)]
pub struct HelpArgs {
    /// A topic or a command; without one, a list of them is printed
    #[arg(value_name = "TOPIC|COMMAND")]
    pub name: Option<String>,
}

/// Options of `rperf attach`.
#[derive(Debug, clap::Args)]
pub struct AttachArgs {
    /// The programs, whose profiles become one.
    #[command(flatten)]
    pub choice: Choice,
    /// For how long they are profiled; Ctrl-C ends it earlier
    #[arg(
        short,
        long,
        value_name = "SECONDS",
        default_value = "10",
        allow_hyphen_values = true
    )]
    pub duration: String,
    /// File to write the profile to [default: rperf.data]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Format of the file, as for 'rperf record' [default: by the file's extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<OsString>,
    /// Print a text profile to stdout instead of writing a file
    #[arg(short, long)]
    pub print: bool,
    /// What is measured, and how often.
    #[command(flatten)]
    pub settings: AttachFlags,
    /// Add a table of the hottest lines to text output
    #[arg(long)]
    pub lines: bool,
    /// Print sampling statistics to stderr
    #[arg(short, long)]
    pub verbose: bool,
}

/// Options of `rperf snapshot`.
#[derive(Debug, clap::Args)]
pub struct SnapshotArgs {
    /// The program's process
    #[arg(value_name = "PID", value_parser = crate::shared_args::checked::pid)]
    pub pid: i32,
    /// File to write the profile to [default: rperf.data]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Format of the file, as for 'rperf record' [default: by the file's extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<OsString>,
    /// Print a text profile to stdout instead of writing a file
    #[arg(short, long)]
    pub print: bool,
    /// Add a table of the hottest lines to text output
    #[arg(long)]
    pub lines: bool,
    /// Leave the main thread alone where all threads wait: then there is no profile
    #[arg(long)]
    pub no_wake: bool,
}

/// Options of `rperf serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Where to answer: 127.0.0.1 and a port (0: any), or the absolute path of a socket
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6060")]
    pub http: String,
    /// Only programs that match this regular expression in the last column of 'rperf ps'
    #[arg(long = "match", value_name = "REGEX")]
    pub matching: Option<String>,
    /// Whose programs are served.
    #[command(flatten)]
    pub users: UserArgs,
}

/// Options of `rperf push`.
#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// A server of Pyroscope: http or https (RPERF_PUSH_AUTHORIZATION has the password)
    #[arg(
        long,
        value_name = "URL",
        required_unless_present = "otlp",
        conflicts_with = "otlp"
    )]
    pub to: Option<String>,
    /// A collector of OpenTelemetry, such as http://127.0.0.1:4318, by OTLP over HTTP
    #[arg(long, value_name = "URL", required_unless_present = "to")]
    pub otlp: Option<String>,
    /// Seconds that a profile is of: 1 to 3600
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "15",
        allow_hyphen_values = true
    )]
    pub every: String,
    /// Only programs that match this regular expression in the last column of 'rperf ps'
    #[arg(long = "match", value_name = "REGEX")]
    pub matching: Option<String>,
    /// Whose programs are profiled.
    #[command(flatten)]
    pub users: UserArgs,
    /// The name of the service [default: OTEL_SERVICE_NAME, or ruby]
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// A further label of all profiles; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE")]
    pub labels: Vec<String>,
    /// A header of all requests, such as 'X-Scope-OrgID: team'; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE")]
    pub headers: Vec<String>,
    /// What is measured, and how often.
    #[command(flatten)]
    pub settings: PushFlags,
    /// End after so many profiles
    #[arg(short = 'n', value_name = "N", value_parser = crate::shared_args::checked::count)]
    pub count: Option<u64>,
}

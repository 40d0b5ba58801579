//! The table of settings: everything that is said of one anywhere is here, or made of what is
//! here. Used by `checked`, and by the command for its flags; any thread.

use super::form::{FORMATS, Form};
use super::setting::{Defaults, Flags, Setting, Takes, Tracing};
use super::words::{ALL_CALLS, AUTO, COUNT, COUNT_ALL, MONOTONIC, RUBY, SAFEPOINT, TICK, TRACE};
use Form::{
    Directory, False, Labels, Loopback, Methods, NoSignal, Number, OutputPath, Text, Time,
    TimerSignal, True, Word, WordWithTimerSignals,
};
use rperf_model::{FREQUENCIES, Mode};

mod asked;
mod limits;

pub use super::measure::MEASURE;
pub use asked::{ATTACH, PUSH};
pub use limits::{MAX_NODES, MAX_OVERHEAD};

/// The file that is written unless another one is named.
pub const DEFAULT_FILE: &str = "rperf.data";
/// The variable that names the directory of a session.
pub const SESSION_VARIABLE: &str = "RPERF_SESSION";
/// The variable that has a program profile itself, if it is 1.
pub const ENABLED_VARIABLE: &str = "RPERF_ENABLED";

/// The file to write.
pub static OUTPUT: Setting = Setting {
    tracing: Tracing::Also,
    unset: Some("no file"),
    default: Defaults {
        record: Some(DEFAULT_FILE),
        ..Defaults::NONE
    },
    flags: Some(Flags {
        short: Some('o'),
        takes: Takes::Value("PATH", "File to write the profile to"),
        record_only: false,
    }),
    for_children: false,
    ..Setting::named("output", &[OutputPath], "file to write when profiling ends")
};

/// What is measured.
pub static MODE: Setting = Setting {
    also: Some("account"),
    default: Defaults {
        page: Some("wall"),
        ..Defaults::is("cpu")
    },
    flags: Some(Flags {
        short: Some('m'),
        takes: Takes::Value(
            "MODE",
            "cpu: CPU time of each thread; wall: all time, with waiting and sleeping{; trace}",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "mode",
        &[Word(Mode::Cpu.name()), Word(Mode::Wall.name()), Word(TRACE)],
        "what to measure",
    )
};

/// Which calls are traced.
pub static CALLS: Setting = Setting {
    unset: Some(RUBY),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "CALLS",
            "ruby: methods and blocks of Ruby; all: those of C, too; count and count-all: the \
             same without times",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "calls",
        &[Word(RUBY), Word(ALL_CALLS), Word(COUNT), Word(COUNT_ALL)],
        "which calls are traced",
    )
};

/// The clock that traced calls are timed by.
pub static CLOCK: Setting = Setting {
    unset: Some(AUTO),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "CLOCK",
            "auto: the processor's counter if the kernel trusts it; monotonic: the system's clock; \
             tick: the time as a thread notes it 1,000 times a second",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "clock",
        &[Word(AUTO), Word(MONOTONIC), Word(TICK)],
        "clock of traced calls",
    )
};

/// From which time on calls are in the time line.
pub static SPANS: Setting = Setting {
    unset: Some("no time line"),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "TIME",
            "Also a time line of the calls that take at least this long, such as 1ms",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "spans",
        &[Time],
        "a time line of the calls that take at least this long",
    )
};

/// The methods whose calls are traced, instead of all.
pub static ONLY: Setting = Setting {
    unset: Some("none"),
    tracing: Tracing::Also,
    flags: Some(Flags {
        short: None,
        takes: Takes::Values(
            "METHOD",
            "Trace calls of this method only, such as Order#total or Cart.*, or of the methods in \
             files such as app/**, at full speed for all others; may be repeated",
        ),
        record_only: true,
    }),
    ..Setting::named("only", &[Methods], "methods whose calls are traced alone")
};

/// The methods that a trace leaves out.
pub static EXCLUDE: Setting = Setting {
    unset: Some("none"),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::Values(
            "METHOD",
            "Leave this method out, such as Order#total or Cart.*, or the methods in files such as \
             vendor/**: its time is its callers'; may be repeated",
        ),
        record_only: false,
    }),
    ..Setting::named("exclude", &[Methods], "methods that a trace leaves out")
};

/// Whether it leaves out Ruby's own iterators.
pub static EXCLUDE_COMMON: Setting = Setting {
    unset: Some("none"),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::On("Leave out Ruby's own iterators, such as Array#each and Integer#times"),
        record_only: false,
    }),
    ..Setting::named(
        "exclude_common",
        &[True, False],
        "on: a trace leaves out Ruby's own iterators",
    )
};

const DEPTH_FORMS: [Form; 1] = [Number(1, 10_000, "frames")];

/// How many frames the stacks of a trace have at most.
pub static DEPTH: Setting = Setting {
    unset: Some("all"),
    tracing: Tracing::Only,
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "N",
            "Frames of a stack at most: calls of deeper ones count, and their time is the last one's",
        ),
        record_only: false,
    }),
    ..Setting::named("depth", &DEPTH_FORMS, "frames of a traced stack at most")
};

/// The format of the file.
pub static FORMAT: Setting = Setting {
    tracing: Tracing::Also,
    unset: Some("by the file's extension"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value("FORMAT", "{values}"),
        record_only: true,
    }),
    for_children: false,
    ..Setting::named("format", &FORMATS, "format of the file")
};

const FREQUENCY_FORMS: [Form; 1] = [Number(
    *FREQUENCIES.start(),
    *FREQUENCIES.end(),
    "samples per second",
)];

/// How often samples are taken.
pub static FREQUENCY: Setting = Setting {
    default: Defaults::is("1000"),
    flags: Some(Flags {
        short: Some('f'),
        takes: Takes::Value("HZ", "Samples per second, {values}"),
        record_only: false,
    }),
    ..Setting::named("frequency", &FREQUENCY_FORMS, "samples per second")
};

/// Whether lines are recorded and shown.
pub static LINES: Setting = Setting {
    unset: Some("line numbers without a table"),
    flags: Some(Flags {
        short: None,
        takes: Takes::OnOrOff(
            "Add a table of the hottest lines to text output",
            "Record no line numbers",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "lines",
        &[True, False],
        "off: no line numbers; on: also a table of lines in text",
    )
};

/// The labels of all samples.
pub static LABELS: Setting = Setting {
    tracing: Tracing::Also,
    unset: Some("none"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "KEY=VALUE,...",
            "Labels for all samples, such as release=1.2",
        ),
        record_only: false,
    }),
    ..Setting::named("labels", &[Labels], "labels for all samples")
};

/// When stacks are taken.
pub static CAPTURE: Setting = Setting {
    unset: Some("tick where a signal may be used"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "tick|safepoint",
            "Take stacks at the tick, or without a signal to Ruby's threads",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "capture",
        &[WordWithTimerSignals(TICK), Word(SAFEPOINT)],
        "when stacks are taken",
    )
};

/// The timer's signal.
pub static SIGNAL: Setting = Setting {
    unset: Some("SIGRTMIN+8"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Value(
            "N|false",
            "Real-time signal of the timer; false: no signal, a sleeping thread is the timer",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "signal",
        &[NoSignal, TimerSignal],
        "real-time signal of the timer",
    )
};

/// Whether samples are summed as they come.
pub static AGGREGATE: Setting = Setting {
    default: Defaults::is("1"),
    flags: Some(Flags {
        short: None,
        takes: Takes::Off(
            "Keep samples one by one until the end instead of summing them as they come",
        ),
        record_only: false,
    }),
    ..Setting::named(
        "aggregate",
        &[True, False],
        "off: keep samples one by one until the end",
    )
};

/// Whether time counts only in sections.
pub static DEFER: Setting = Setting {
    default: Defaults::is("0"),
    variable: false,
    for_children: false,
    ..Setting::named(
        "defer",
        &[True, False],
        "on: profile only what runs in blocks of Rperf.profile",
    )
};

/// Whether the processes that the program starts are profiled, too. With the command they are.
pub static INHERIT: Setting = Setting {
    tracing: Tracing::Also,
    default: Defaults {
        command: Some("1"),
        ..Defaults::is("0")
    },
    flags: Some(Flags {
        short: None,
        takes: Takes::Off("Profile the first Ruby process only, and none that it forks or starts"),
        record_only: false,
    }),
    for_children: false,
    ..Setting::named(
        "inherit",
        &[False, Word("fork"), True],
        "fork: also profile forked children; on: Rubies that are started, too",
    )
};

/// Whether programs that run can be asked, and where their ports are.
pub static LISTEN: Setting = Setting {
    tracing: Tracing::Also,
    default: Defaults::is("0"),
    flags: Some(Flags {
        short: None,
        takes: Takes::On(
            "Open a port, a socket at which 'rperf ps', 'rperf stacks' and others ask the program",
        ),
        record_only: false,
    }),
    keyword: false,
    ..Setting::named(
        "listen",
        &[True, False, Directory, Loopback],
        "open a port; a path: in that directory; an address: also there",
    )
};

/// Whether a program in which all threads wait may be woken for an answer.
pub static LISTEN_WAKE: Setting = Setting {
    tracing: Tracing::Also,
    unset: Some("1"),
    keyword: false,
    for_children: false,
    ..Setting::named(
        "listen_wake",
        &[True, False],
        "wake the main thread for an answer if no thread runs",
    )
};

/// Whether a program with a port has a thread for answers all the time.
pub static LISTEN_HELPER: Setting = Setting {
    tracing: Tracing::Also,
    unset: Some("0"),
    keyword: false,
    for_children: false,
    ..Setting::named(
        "listen_helper",
        &[True, False],
        "keep a thread for answers, which come at once then",
    )
};

/// Whether sampling statistics are printed.
pub static VERBOSE: Setting = Setting {
    tracing: Tracing::Also,
    default: Defaults::is("0"),
    flags: Some(Flags {
        short: Some('v'),
        takes: Takes::On("Print sampling statistics to stderr"),
        record_only: false,
    }),
    for_children: false,
    ..Setting::named(
        "verbose",
        &[True, False],
        "print sampling statistics to stderr",
    )
};

/// Whether the page of `rperf stat` is printed: what it needs is told by children, too.
pub static STAT: Setting = Setting {
    default: Defaults::is("0"),
    keyword: false,
    ..Setting::named(
        "stat",
        &[True, False],
        "print where the time went to stderr",
    )
};

/// Whether the page has tables of methods.
pub static STAT_REPORT: Setting = Setting {
    default: Defaults::is("0"),
    keyword: false,
    for_children: false,
    ..Setting::named(
        "stat_report",
        &[True, False],
        "add tables of methods to that",
    )
};

/// The command that the page names.
pub static STAT_COMMAND: Setting = Setting {
    unset: Some("the program's name"),
    keyword: false,
    for_children: false,
    ..Setting::named("stat_command", &[Text], "the command to name there")
};

/// All settings, in the order in which they are listed.
pub static ALL: [&Setting; 28] = [
    &OUTPUT,
    &MODE,
    &CALLS,
    &CLOCK,
    &MEASURE,
    &SPANS,
    &ONLY,
    &EXCLUDE,
    &EXCLUDE_COMMON,
    &DEPTH,
    &FORMAT,
    &FREQUENCY,
    &MAX_OVERHEAD,
    &MAX_NODES,
    &LINES,
    &LABELS,
    &CAPTURE,
    &SIGNAL,
    &AGGREGATE,
    &DEFER,
    &INHERIT,
    &LISTEN,
    &LISTEN_WAKE,
    &LISTEN_HELPER,
    &VERBOSE,
    &STAT,
    &STAT_REPORT,
    &STAT_COMMAND,
];

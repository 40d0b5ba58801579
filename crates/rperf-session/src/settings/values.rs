//! Methods of settings that have been checked, one for each value. Used by the command and the extension; any
//! thread.

use super::form::{Source, Value};
use super::map::Settings;
use super::table::{
    AGGREGATE, ALL, CALLS, CAPTURE, CLOCK, DEFER, DEPTH, EXCLUDE, EXCLUDE_COMMON, FORMAT,
    FREQUENCY, INHERIT, LINES, MAX_NODES, MAX_OVERHEAD, MODE, ONLY, OUTPUT, SIGNAL, SPANS, STAT,
    STAT_COMMAND, STAT_REPORT, VERBOSE,
};
use super::words::{ALL_CALLS, COUNT, COUNT_ALL, MONOTONIC, TICK};
use rperf_format::Format;
use rperf_model::SessionMode;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The timer's signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// None: a thread that sleeps.
    None,
    /// The real-time signal with this number.
    Number(i32),
}

/// When stacks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// At the timer's tick, by a signal to the thread that runs.
    Tick,
    /// Where the VM next looks for interrupts.
    Safepoint,
}

/// The clock of traced calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The processor's counter if the kernel trusts it.
    Best,
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// CLOCK_MONOTONIC as a thread notes it, many thousand times a second.
    Tick,
}

/// Which children are profiled, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// None.
    None,
    /// Children that are forked.
    Forked,
    /// All Ruby processes.
    All,
}

impl Settings {
    /// Returns these settings with another output, which nobody has checked.
    pub fn with_output(mut self, path: impl Into<PathBuf>) -> Self {
        self.put(&OUTPUT, Some(Value::Path(path.into())));
        self
    }

    /// What each process of a session has to know, as text, by the names without the prefix.
    pub fn for_children(&self) -> impl Iterator<Item = (String, OsString)> {
        let ours = ALL.iter().filter(|setting| setting.for_children);
        ours.filter_map(|setting| {
            let value = self.get(setting)?;
            Some((setting.key(), value.spelled(Source::Variable)))
        })
    }

    /// Samples per second.
    pub fn frequency(&self) -> u32 {
        self.number(&FREQUENCY)
    }

    /// The percentage of the program's CPU time that sampling may take.
    pub fn max_overhead(&self) -> u32 {
        self.number(&MAX_OVERHEAD)
    }

    /// Nodes of the call tree that a profile has at most.
    pub fn max_nodes(&self) -> u32 {
        self.number(&MAX_NODES)
    }

    /// Whether calls are traced, and nothing is sampled.
    pub fn is_traced(&self) -> bool {
        self.mode() == SessionMode::Trace
    }

    /// The methods whose calls are traced, instead of all; empty if there are none.
    pub fn only(&self) -> &[String] {
        self.methods(&ONLY)
    }

    /// The methods that a trace leaves out.
    pub fn exclude(&self) -> &[String] {
        self.methods(&EXCLUDE)
    }

    /// Whether it leaves out Ruby's own iterators.
    pub fn excludes_common(&self) -> bool {
        self.is_on(&EXCLUDE_COMMON)
    }

    /// How many frames its stacks have at most, if there is a limit.
    pub fn depth(&self) -> Option<u32> {
        match self.get(&DEPTH) {
            Some(Value::Integer(depth)) => Some(*depth),
            _ => None,
        }
    }

    /// Whether calls of methods of C are traced, too.
    pub fn traces_c_methods(&self) -> bool {
        matches!(self.word(&CALLS), Some(ALL_CALLS | COUNT_ALL))
    }

    /// Whether traced calls are timed.
    pub fn times_calls(&self) -> bool {
        !matches!(self.word(&CALLS), Some(COUNT | COUNT_ALL))
    }

    /// The clock that they are timed by.
    pub fn clock(&self) -> Clock {
        match self.word(&CLOCK) {
            Some(MONOTONIC) => Clock::Monotonic,
            Some(TICK) => Clock::Tick,
            _ => Clock::Best,
        }
    }

    /// The ns from which on traced calls are in the time line, if there is one.
    pub fn spans_ns(&self) -> Option<u64> {
        match self.get(&SPANS) {
            Some(Value::Time(micros)) => Some(u64::from(*micros) * 1_000),
            _ => None,
        }
    }

    /// What the session does.
    pub fn mode(&self) -> SessionMode {
        let mode = self.word(&MODE).and_then(SessionMode::from_name);
        mode.unwrap_or_default()
    }

    /// The absolute path of the file to write, if there is to be one.
    pub fn output(&self) -> Option<&Path> {
        match self.get(&OUTPUT)? {
            Value::Path(path) => Some(path),
            _ => None,
        }
    }

    /// A format other than the one of the file's extension.
    pub fn format(&self) -> Option<Format> {
        self.word(&FORMAT).and_then(Format::from_name)
    }

    /// Whether line numbers are recorded and shown; `None`: recorded only.
    pub fn lines(&self) -> Option<bool> {
        self.get(&LINES)?;
        Some(self.is_on(&LINES))
    }

    /// Whether text has a table of lines.
    pub fn shows_lines(&self) -> bool {
        self.is_on(&LINES)
    }

    /// When stacks are taken; `None`: at the tick, where a signal may be used.
    pub fn capture(&self) -> Option<Capture> {
        match self.word(&CAPTURE)? {
            TICK => Some(Capture::Tick),
            _ => Some(Capture::Safepoint),
        }
    }

    /// The timer's signal, if it isn't to be the default one.
    pub fn signal(&self) -> Option<Signal> {
        match self.get(&SIGNAL)? {
            Value::Integer(number) => i32::try_from(*number).ok().map(Signal::Number),
            _ => Some(Signal::None),
        }
    }

    /// Whether samples are summed as they come.
    pub fn aggregate(&self) -> bool {
        self.is_on(&AGGREGATE)
    }

    /// Whether time counts in sections only.
    pub fn defer(&self) -> bool {
        self.is_on(&DEFER)
    }

    /// Which children are profiled, too.
    pub fn inherit(&self) -> Inherit {
        match self.get(&INHERIT) {
            Some(Value::Bool(true)) => Inherit::All,
            Some(Value::Word(_)) => Inherit::Forked,
            _ => Inherit::None,
        }
    }

    /// Whether sampling statistics are printed.
    pub fn verbose(&self) -> bool {
        self.is_on(&VERBOSE)
    }

    /// Whether a program that profiles itself prints the page.
    pub fn stat(&self) -> bool {
        self.is_on(&STAT)
    }

    /// Whether that has tables of methods.
    pub fn stat_report(&self) -> bool {
        self.is_on(&STAT_REPORT)
    }

    /// The command that it names.
    pub fn stat_command(&self) -> Option<&OsStr> {
        match self.get(&STAT_COMMAND)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

//! Settings that have been checked: what was given, against the table, or the defaults. Used by
//! the command and the extension; any thread.

mod together;

use super::check::{InvalidSetting, check, quoted};
use super::form::{Given, Source, Value};
use super::setting::Setting;
use super::table::{
    AGGREGATE, ALL, ALL_CALLS, ALLOC, CALLS, CAPTURE, CLOCK, COUNT, COUNT_ALL, CPU, DEFER, FORMAT,
    FREQUENCY, INHERIT, LINES, MAX_OVERHEAD, MEASURE, MODE, MONOTONIC, ONLY, OUTPUT, SIGNAL, SPANS,
    STAT, STAT_COMMAND, STAT_REPORT, TICK, TRACE, VERBOSE,
};
use rperf_format::Format;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The timer's signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// None: a thread that sleeps.
    None,
    /// This real-time signal.
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
}

/// Which children are profiled, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherit {
    /// None.
    None,
    /// Those that are forked.
    Forked,
    /// All Ruby processes.
    All,
}

/// All settings, each with a value that is allowed, if it has any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, Value>);

impl Settings {
    /// Of `Rperf.start`: the keywords that were given, each with a text for the case that it isn't
    /// allowed.
    pub fn from_keywords<'a, Shown: FnOnce() -> String>(
        given: impl IntoIterator<Item = (&'static Setting, Given<'a>, Shown)>,
    ) -> Result<Self, InvalidSetting> {
        let mut settings = Self::new();
        let mut named = Vec::new();
        for (setting, given, shown) in given {
            named.push(setting.name);
            settings.put(setting, check(setting, &given, Source::Keyword, shown)?);
        }
        for setting in ALL.iter().filter(|it| !named.contains(&it.name)) {
            settings.put_default(setting, Source::Keyword, setting.default.keyword)?;
        }
        settings.check_together(Source::Keyword)?;
        Ok(settings)
    }

    /// Of a command, by its flags: `1` and `0` stand for flags that switch something on or off.
    /// `page`: it prints a page.
    pub fn from_flags(
        given: impl IntoIterator<Item = (&'static Setting, OsString)>,
        page: bool,
    ) -> Result<Self, InvalidSetting> {
        Self::new().read_flags(given, page)
    }

    /// The same of a command that writes the profile to a file, or prints it as text to `print`,
    /// whatever its flags say. With `traced` it traces calls.
    pub fn for_file(
        given: impl IntoIterator<Item = (&'static Setting, OsString)>,
        print: Option<&Path>,
        traced: bool,
    ) -> Result<Self, InvalidSetting> {
        let mut settings = Self::new();
        if let Some(path) = print {
            settings = settings.with_output(path);
            settings.put(&FORMAT, Some(Value::Word(Format::Text.name())));
        }
        if traced {
            settings.put(&MODE, Some(Value::Word(TRACE)));
        }
        settings.read_flags(given, false)
    }

    fn read_flags(
        self,
        given: impl IntoIterator<Item = (&'static Setting, OsString)>,
        page: bool,
    ) -> Result<Self, InvalidSetting> {
        let given: Vec<_> = given.into_iter().collect();
        self.read_texts(Source::Flag, page, |setting| {
            let mut given = given.iter();
            given.find(|it| it.0.name == setting.name).map(|it| &*it.1)
        })
    }

    fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Of a program that profiles itself, by its variables; `variable` knows them by their names
    /// without the prefix.
    pub fn from_variables<'a>(
        variable: impl Fn(&str) -> Option<&'a OsStr>,
    ) -> Result<Self, InvalidSetting> {
        let read = |setting: &Setting| variable(&setting.key()).filter(|_| setting.variable);
        let mut page = Self::new();
        page.read(&STAT, Source::Variable, read(&STAT), None)?;
        Self::new().read_texts(Source::Variable, page.is_on(&STAT), read)
    }

    /// Of a process that takes part in a session, by the session's settings.
    pub fn of_member<'a>(
        setting: impl Fn(&str) -> Option<&'a OsStr>,
    ) -> Result<Self, InvalidSetting> {
        let mut settings = Self::new();
        for it in ALL {
            let given = setting(&it.key()).filter(|_| it.for_children);
            settings.read(it, Source::Variable, given, it.default.keyword)?;
        }
        Ok(settings)
    }

    /// Adds all that have no value yet.
    fn read_texts<'a>(
        mut self,
        source: Source,
        page: bool,
        given: impl Fn(&Setting) -> Option<&'a OsStr>,
    ) -> Result<Self, InvalidSetting> {
        for setting in ALL {
            if self.get(setting).is_some() {
                continue;
            }
            let default = &setting.default;
            let usual = if page { default.page } else { default.record };
            let command = default.command.filter(|_| source == Source::Flag);
            self.read(setting, source, given(setting), command.or(usual))?;
        }
        self.check_together(source)?;
        Ok(self)
    }

    fn read(
        &mut self,
        setting: &Setting,
        source: Source,
        given: Option<&OsStr>,
        default: Option<&'static str>,
    ) -> Result<(), InvalidSetting> {
        let value = match given {
            Some(text) => check(setting, &Given::Text(text), source, || quoted(text))?,
            None => None,
        };
        match value {
            None => self.put_default(setting, source, default),
            value => {
                self.put(setting, value);
                Ok(())
            }
        }
    }

    /// Defaults are allowed, but for a file that can't be written.
    fn put_default(
        &mut self,
        setting: &Setting,
        source: Source,
        default: Option<&'static str>,
    ) -> Result<(), InvalidSetting> {
        if let Some(text) = default.map(OsStr::new) {
            let value = check(setting, &Given::Text(text), source, || quoted(text))?;
            self.put(setting, value);
        }
        Ok(())
    }

    fn put(&mut self, setting: &Setting, value: Option<Value>) {
        match value {
            Some(value) => _ = self.0.insert(setting.name, value),
            None => _ = self.0.remove(setting.name),
        }
    }
}

impl Settings {
    /// The value of `setting`, if it has one.
    pub fn get(&self, setting: &Setting) -> Option<&Value> {
        self.0.get(setting.name)
    }

    /// The same settings but for the output, which nobody has checked.
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

    fn is_on(&self, setting: &Setting) -> bool {
        self.get(setting) == Some(&Value::Bool(true))
    }

    fn word(&self, setting: &Setting) -> Option<&'static str> {
        match self.get(setting)? {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Samples per second.
    pub fn frequency(&self) -> u32 {
        self.number(&FREQUENCY)
    }

    /// The percentage of the program's CPU time that sampling may take.
    pub fn max_overhead(&self) -> u32 {
        self.number(&MAX_OVERHEAD)
    }

    fn number(&self, setting: &Setting) -> u32 {
        match self.get(setting) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }

    /// Whether calls are traced, and nothing is sampled.
    pub fn is_traced(&self) -> bool {
        self.mode() == TRACE
    }

    /// The methods whose calls are traced, instead of all; empty if there are none.
    pub fn only(&self) -> &[String] {
        match self.get(&ONLY) {
            Some(Value::Methods(names)) => names,
            _ => &[],
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
            _ => Clock::Best,
        }
    }

    /// Whether objects that are made are counted.
    pub fn measures_objects(&self) -> bool {
        self.measures(ALLOC)
    }

    /// Whether traced calls have CPU time, too.
    pub fn measures_cpu(&self) -> bool {
        self.measures(CPU)
    }

    fn measures(&self, word: &str) -> bool {
        matches!(self.get(&MEASURE), Some(Value::Words(words)) if words.contains(&word))
    }

    /// The ns from which on traced calls are in the time line, if there is one.
    pub fn spans_ns(&self) -> Option<u64> {
        match self.get(&SPANS) {
            Some(Value::Time(micros)) => Some(u64::from(*micros) * 1_000),
            _ => None,
        }
    }

    /// What is measured: `cpu`, `wall` or `trace`.
    pub fn mode(&self) -> &'static str {
        self.word(&MODE).unwrap_or_default()
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

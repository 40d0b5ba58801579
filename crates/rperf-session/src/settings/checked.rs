//! Checks settings: what was given, against the table and one against another. Used by the command
//! and the extension; any thread.

use super::check::{InvalidSetting, check, quoted};
use super::form::{Form, Given, Source, Value};
use super::map::Settings;
use super::measure::{ALLOC, ALLOC_SAMPLED, CPU, GC_COST, HEAP, Within};
use super::setting::Setting;
use super::table::{
    AGGREGATE, ALL, CALLS, CAPTURE, CLOCK, DEFER, DEPTH, EXCLUDE, EXCLUDE_COMMON, FORMAT, INHERIT,
    LINES, MEASURE, MODE, ONLY, OUTPUT, SIGNAL, SPANS, STAT,
};
use super::values::{Capture, Clock, Inherit, Signal};
use super::words::{RUBY, SAFEPOINT, TRACE, WALL};
use rperf_format::Format;
use rperf_model::{Mode, SessionMode};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The shortest time that calls can be chosen by where the time is noted every 1.5 ms, or sooner.
const SHORTEST_BY_TICK_NS: u64 = 10_000_000;

impl Settings {
    /// The settings of `Rperf.start`: the keywords that were given, each with a text for the case
    /// that it isn't allowed.
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

    /// The settings of a command, by its flags: `1` and `0` stand for flags that switch something
    /// on or off. Each value is checked by the row that it comes with. `page`: it prints a page.
    pub fn from_flags(
        given: impl IntoIterator<Item = (&'static Setting, OsString)>,
        page: bool,
    ) -> Result<Self, InvalidSetting> {
        Self::new().read_flags(given, page)
    }

    /// The settings of a command that writes the profile to a file, or prints it as text to
    /// `print`, whatever its flags say. With `traced` it traces calls.
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
            let (row, text) = given.find(|it| it.0.name == setting.name)?;
            Some((*row, text.as_os_str()))
        })
    }

    fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The settings of a program that profiles itself, by its variables; `variable` knows them by
    /// their names without the prefix.
    pub fn from_variables<'a>(
        variable: impl Fn(&str) -> Option<&'a OsStr>,
    ) -> Result<Self, InvalidSetting> {
        let read = |setting: &Setting| variable(&setting.key()).filter(|_| setting.variable);
        let mut page = Self::new();
        page.read(&STAT, Source::Variable, read(&STAT), None)?;
        let page = page.is_on(&STAT);
        Self::new().read_texts(Source::Variable, page, |setting| {
            Some((setting, read(setting)?))
        })
    }

    /// The settings of a process that takes part in a session, by the session's settings.
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

    /// Adds each setting that has no value yet. A given one is checked by the row that comes with it.
    fn read_texts<'a>(
        mut self,
        source: Source,
        page: bool,
        given: impl Fn(&'static Setting) -> Option<(&'static Setting, &'a OsStr)>,
    ) -> Result<Self, InvalidSetting> {
        for setting in ALL {
            if self.get(setting).is_some() {
                continue;
            }
            let default = &setting.default;
            let usual = if page { default.page } else { default.record };
            let command = default.command.filter(|_| source == Source::Flag);
            let (row, text) = given(setting).unzip();
            self.read(row.unwrap_or(setting), source, text, command.or(usual))?;
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

    /// What goes together.
    fn check_together(&self, source: Source) -> Result<(), InvalidSetting> {
        // The command has looked at the name as it was given.
        if source != Source::Flag {
            self.check_name_of_file(source)?;
        }
        // The timer's signal is passed on to the thread that runs.
        if self.capture() == Some(Capture::Tick) && self.signal() == Some(Signal::None) {
            return Err(self.refuse(&CAPTURE, Form::Word(SAFEPOINT), &SIGNAL, source));
        }
        self.check_tracing(source)?;
        if self.measures_within(Within::Wall) && self.mode() != SessionMode::Sampling(Mode::Wall) {
            return Err(self.refuse(&MODE, Form::Word(WALL), &MEASURE, source));
        }
        // Nothing but time is kept one by one.
        if self.get(&MEASURE).is_some() && !self.aggregate() {
            return Err(self.refuse(&AGGREGATE, Form::True, &MEASURE, source));
        }
        if self.measures_objects() && self.samples_objects() {
            let other = match (self.follows_objects(), self.shares_gc()) {
                (true, _) => HEAP,
                (false, true) => GC_COST,
                (false, false) => ALLOC_SAMPLED,
            };
            let [given, other] = [ALLOC, other].map(|word| {
                let word = Form::Word(word).listed(source);
                assignment(&MEASURE, &word, source)
            });
            return Err(InvalidSetting::Apart { given, other });
        }
        self.check_only(source)?;
        // Processes leave sums to be merged. The command does what it can with them.
        if source != Source::Flag && self.inherit() != Inherit::None && !self.aggregate() {
            return Err(self.refuse(&INHERIT, Form::False, &AGGREGATE, source));
        }
        Ok(())
    }

    /// What goes together with traced calls. Their flags are given apart from those of samples.
    fn check_tracing(&self, source: Source) -> Result<(), InvalidSetting> {
        if !self.is_traced() {
            let of_traces = [&CALLS, &CLOCK, &SPANS, &EXCLUDE, &EXCLUDE_COMMON, &DEPTH];
            let given = of_traces.into_iter().find(|it| self.is_given(it));
            return match given {
                Some(given) => Err(self.refuse(&MODE, Form::Word(TRACE), given, source)),
                None if self.measures_within(Within::Traces) => {
                    Err(self.refuse(&MODE, Form::Word(TRACE), &MEASURE, source))
                }
                None => self.check_time_line(source),
            };
        }
        if self.measures_within(Within::Samples) {
            let [cpu, wall] = [CPU, WALL].map(|it| Form::Word(it).listed(source));
            let allowed = format!("{cpu} or {wall}");
            return Err(self.refuse_all_but(&MODE, &allowed, &MEASURE, source));
        }
        if self.spans_ns().is_some() && !self.times_calls() {
            return Err(self.refuse(&CALLS, Form::Word(RUBY), &SPANS, source));
        }
        self.check_time_line(source)?;
        if self.is_on(&STAT) {
            return Err(self.refuse(&STAT, Form::False, &MODE, source));
        }
        if !self.aggregate() {
            return Err(self.refuse(&AGGREGATE, Form::True, &MODE, source));
        }
        // The others about samples have a value always.
        let mut without_default = [&CAPTURE, &SIGNAL, &LINES].into_iter();
        match without_default.find(|it| self.get(it).is_some()) {
            Some(given) => Err(self.refuse_any(given, &MODE, source)),
            // Without returns it isn't known which call is at work.
            None if !self.times_calls() && self.get(&MEASURE).is_some() => {
                Err(self.refuse_any(&MEASURE, &CALLS, source))
            }
            None => self.check_tick(source),
        }
    }

    /// What goes together with a clock that is too coarse for a single call.
    fn check_tick(&self, source: Source) -> Result<(), InvalidSetting> {
        if self.clock() != Clock::Tick {
            return Ok(());
        }
        if self.measures_latency() {
            let [alloc, cpu] = [ALLOC, CPU].map(|it| Form::Word(it).listed(source));
            let allowed = format!("{alloc} or {cpu}");
            return Err(self.refuse_all_but(&MEASURE, &allowed, &CLOCK, source));
        }
        match self.spans_ns() {
            Some(ns) if ns < SHORTEST_BY_TICK_NS => {
                Err(self.refuse_all_but(&SPANS, "10ms or more", &CLOCK, source))
            }
            _ => Ok(()),
        }
    }

    /// Whether there is a value that says something.
    fn is_given(&self, setting: &Setting) -> bool {
        let value = self.get(setting);
        value.is_some_and(|value| *value != Value::Bool(false))
    }

    /// The error for any value of `setting` with that of `other`.
    fn refuse_any(&self, setting: &Setting, other: &Setting, source: Source) -> InvalidSetting {
        InvalidSetting::Apart {
            given: self.assignment(setting, source),
            other: self.assignment(other, source),
        }
    }

    /// A new profile is in no file that is named as a report: nobody would know it, and a report can't be read
    /// again.
    fn check_name_of_file(&self, source: Source) -> Result<(), InvalidSetting> {
        let path = self.output().filter(|_| self.format().is_none());
        let named = path.and_then(|path| Some((path, Format::named_as_other(path)?)));
        let Some((path, (kind, report))) = named else {
            return Ok(());
        };
        let profile = path.with_extension("pb.gz");
        let profile = profile.file_name().unwrap_or_default().to_string_lossy();
        let profile = profile.replace(char::is_control, " ");
        let remedy = match report.map(Format::name) {
            Some(name) => {
                let format = assignment(&FORMAT, &Form::Word(name).listed(source), source);
                format!("write {profile}, which 'rperf report' converts, or give {format}")
            }
            None => format!("write {profile}"),
        };
        Err(InvalidSetting::NoProfile {
            given: self.assignment(&OUTPUT, source),
            kind,
            remedy,
        })
    }

    /// A file of the time line alone needs one.
    fn check_time_line(&self, source: Source) -> Result<(), InvalidSetting> {
        let by_name = self.output().map(Format::from_path);
        let format = self.format().or(by_name);
        if format != Some(Format::Spans) || self.spans_ns().is_some() {
            return Ok(());
        }
        let setting = if self.format().is_some() {
            &FORMAT
        } else {
            &OUTPUT
        };
        let given = self.assignment(setting, source);
        if self.is_traced() {
            let spans = SPANS.label(source);
            return Err(InvalidSetting::NoSpans { given, spans });
        }
        let remedy = match source {
            Source::Flag => "'rperf trace --spans 1ms' keeps one",
            Source::Keyword => "mode: :trace and spans: \"1ms\" keep one",
            Source::Variable => "RPERF_MODE=trace and RPERF_SPANS=1ms keep one",
        };
        let remedy = remedy.into();
        Err(InvalidSetting::NoTrace { given, remedy })
    }

    /// What goes together with chosen methods.
    fn check_only(&self, source: Source) -> Result<(), InvalidSetting> {
        if self.only().is_empty() {
            return Ok(());
        }
        if self.word(&CALLS).is_some_and(|calls| calls != RUBY) {
            return Err(self.refuse(&CALLS, Form::Word(RUBY), &ONLY, source));
        }
        // What is not chosen is left out in any case.
        let of_all = [&SPANS, &EXCLUDE, &EXCLUDE_COMMON, &DEPTH];
        if let Some(given) = of_all.into_iter().find(|it| self.is_given(it)) {
            return Err(self.refuse_any(given, &ONLY, source));
        }
        // A single call is as long as its time, and most are shorter than a tick.
        if self.clock() == Clock::Tick {
            return Err(self.refuse_any(&CLOCK, &ONLY, source));
        }
        if self.is_traced() && self.defer() {
            return Err(self.refuse(&DEFER, Form::False, &ONLY, source));
        }
        // Only chosen methods are told of: whose all the objects are is not known.
        if self.is_traced() && self.get(&MEASURE).is_some() {
            return Err(self.refuse_any(&MEASURE, &ONLY, source));
        }
        match self.aggregate() {
            true => Ok(()),
            false => Err(self.refuse(&AGGREGATE, Form::True, &ONLY, source)),
        }
    }

    /// The error for the value of `setting`, which can only be `remaining` with that of `other`.
    fn refuse(
        &self,
        setting: &Setting,
        remaining: Form,
        other: &Setting,
        source: Source,
    ) -> InvalidSetting {
        if setting.is_switch(source) {
            return self.refuse_any(setting, other, source);
        }
        let mut remaining = remaining.described(source);
        if source == Source::Keyword && setting.unset.is_some() {
            remaining += " or nil";
        }
        self.refuse_all_but(setting, &remaining, other, source)
    }

    /// The error of [`Self::refuse`], with what remains as text. A trace needn't have been asked for by its mode: a
    /// command of its own makes one.
    fn refuse_all_but(
        &self,
        setting: &Setting,
        remaining: &str,
        other: &Setting,
        source: Source,
    ) -> InvalidSetting {
        if source == Source::Flag && self.is_traced() && setting.name == MODE.name {
            return InvalidSetting::GoesWith {
                given: self.assignment(other, source),
                allowed: format!("'rperf record {}'", assignment(setting, remaining, source)),
                other: "traced calls".into(),
            };
        }
        InvalidSetting::GoesWith {
            given: self.assignment(other, source),
            allowed: assignment(setting, remaining, source),
            other: self.assignment(setting, source),
        }
    }

    /// A setting with its value, as the user writes them.
    fn assignment(&self, setting: &Setting, source: Source) -> String {
        let value = self.get(setting);
        if setting.is_switch(source) {
            return match value {
                Some(Value::Bool(false)) => format!("--no-{}", setting.long()),
                _ => setting.label(source),
            };
        }
        let value = value.map_or_else(OsString::new, |value| value.spelled(source));
        assignment(setting, &value.to_string_lossy(), source)
    }
}

fn assignment(setting: &Setting, value: &str, source: Source) -> String {
    let gap = match source {
        Source::Variable => "=",
        Source::Keyword | Source::Flag => " ",
    };
    let text = format!("{}{gap}{value}", setting.label(source));
    text.replace(char::is_control, " ")
}

//! Which values of settings go together, and what is said if they don't. Used by [`Settings`] as it is
//! made; any thread.

use super::{Capture, Inherit, Settings, Signal};
use crate::settings::check::{InvalidSetting, quoted};
use crate::settings::form::{Form, Source};
use crate::settings::setting::Setting;
use crate::settings::table::{
    AGGREGATE, CALLS, CAPTURE, CLOCK, DEFER, FORMAT, INHERIT, LINES, MEASURE, MODE, ONLY, OUTPUT,
    RUBY, SAFEPOINT, SIGNAL, SPANS, STAT, TRACE,
};
use rperf_format::Format;
use std::ffi::OsString;

impl Settings {
    /// What goes together.
    pub(super) fn check_together(&self, source: Source) -> Result<(), InvalidSetting> {
        // The timer's signal is passed on to the thread that runs.
        if self.capture() == Some(Capture::Tick) && self.signal() == Some(Signal::None) {
            return Err(self.refuse(&CAPTURE, Form::Word(SAFEPOINT), &SIGNAL, source));
        }
        self.check_tracing(source)?;
        // Objects are not kept one by one.
        if self.measures_objects() && !self.aggregate() {
            return Err(self.refuse(&AGGREGATE, Form::True, &MEASURE, source));
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
            let given = [&CALLS, &CLOCK, &SPANS]
                .into_iter()
                .find(|it| self.get(it).is_some());
            return match given {
                Some(given) => Err(self.refuse(&MODE, Form::Word(TRACE), given, source)),
                None => Ok(()),
            };
        }
        if self.spans_ns().is_some() && !self.times_calls() {
            return Err(self.refuse(&CALLS, Form::Word(RUBY), &SPANS, source));
        }
        self.check_time_line(source)?;
        for setting in [&DEFER, &STAT] {
            if self.is_on(setting) {
                return Err(self.refuse(setting, Form::False, &MODE, source));
            }
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
            None => Ok(()),
        }
    }

    /// The error for any value of `setting` with that of `other`.
    fn refuse_any(&self, setting: &Setting, other: &Setting, source: Source) -> InvalidSetting {
        let remaining = match source {
            Source::Keyword => "nil",
            Source::Flag => "left out",
            Source::Variable => "empty",
        };
        self.refuse_all_but(setting, remaining, other, source)
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
        let spans = SPANS.label(source);
        Err(InvalidSetting {
            label: setting.label(source),
            allowed: format!("of another format without {spans}"),
            shown: "that of a time line".into(),
        })
    }

    /// What goes together with chosen methods.
    fn check_only(&self, source: Source) -> Result<(), InvalidSetting> {
        if self.only().is_empty() {
            return Ok(());
        }
        if self.word(&CALLS).is_some_and(|calls| calls != RUBY) {
            return Err(self.refuse(&CALLS, Form::Word(RUBY), &ONLY, source));
        }
        if self.get(&SPANS).is_some() {
            return Err(self.refuse_all_but(&SPANS, "left out", &ONLY, source));
        }
        // Only chosen methods are told of: whose all the objects are isn't known.
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
        let mut remaining = remaining.described(source);
        if source == Source::Keyword && setting.unset.is_some() {
            remaining += " or nil";
        }
        self.refuse_all_but(setting, &remaining, other, source)
    }

    /// The same with a text.
    fn refuse_all_but(
        &self,
        setting: &Setting,
        remaining: &str,
        other: &Setting,
        source: Source,
    ) -> InvalidSetting {
        let spelled = |it: &Setting| {
            let value = self.get(it);
            value.map_or_else(OsString::new, |value| value.spelled(source))
        };
        let gap = match source {
            Source::Variable => "=",
            Source::Keyword | Source::Flag => " ",
        };
        let other_label = other.label(source);
        let (value, other) = (spelled(setting), spelled(other));
        let other = other.display();
        InvalidSetting {
            label: setting.label(source),
            allowed: format!("{remaining} with {other_label}{gap}{other}"),
            shown: match source {
                Source::Keyword => value.display().to_string(),
                Source::Flag | Source::Variable => quoted(&value),
            },
        }
    }
}

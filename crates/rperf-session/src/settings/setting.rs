//! What is said of a setting: the columns of the table. Used by `table` and `check`, and by the
//! command for its flags; any thread.

use super::form::{Form, Source};

/// What the name of a variable begins with.
pub const PREFIX: &str = "RPERF_";

/// A thing that can be set.
#[derive(Debug)]
pub struct Setting {
    /// Its name: of the keyword as it is, of the flag with dashes, of the variable in capitals.
    pub name: &'static str,
    /// The forms that its values may have.
    pub forms: &'static [Form],
    /// A further word of its keyword and its variable, which asks for something else than a session: whoever reads
    /// these has looked for it before.
    pub also: Option<&'static str>,
    /// What it is about, in a few words.
    pub meaning: &'static str,
    /// What holds if it has no value; `None`: it always has one.
    pub unset: Option<&'static str>,
    /// What it is if nobody says anything.
    pub default: Defaults,
    /// Whether it is about tracing.
    pub tracing: Tracing,
    /// Its flags, if it has any.
    pub flags: Option<Flags>,
    /// Whether `Rperf.start` takes it.
    pub keyword: bool,
    /// Whether there is a variable of it.
    pub variable: bool,
    /// Whether it is for each process of a session, not only for the one that merges them.
    pub for_children: bool,
}

/// What a setting is if nobody says anything, as text.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    /// For `Rperf.start`.
    pub keyword: Option<&'static str>,
    /// Where a file is written: for `rperf record`, and for RPERF_ENABLED=1.
    pub record: Option<&'static str>,
    /// Where a page is printed: for `rperf stat` and `exec`, and with RPERF_STAT=1.
    pub page: Option<&'static str>,
    /// For all commands, where that differs.
    pub command: Option<&'static str>,
}

impl Defaults {
    pub(super) const NONE: Self = Self::of(None);

    pub(super) const fn of(text: Option<&'static str>) -> Self {
        Self {
            keyword: text,
            record: text,
            page: text,
            command: None,
        }
    }

    pub(super) const fn is(text: &'static str) -> Self {
        Self::of(Some(text))
    }
}

/// A setting's flags.
#[derive(Debug)]
pub struct Flags {
    /// The short one.
    pub short: Option<char>,
    /// What they take.
    pub takes: Takes,
    /// Whether only `rperf record` has them.
    pub record_only: bool,
}

/// Whether a setting is about calls that are traced, or about samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracing {
    /// About samples.
    No,
    /// About both.
    Also,
    /// About traced calls.
    Only,
}

/// What a setting's flags take.
#[derive(Debug)]
pub enum Takes {
    /// A value, which is called so.
    Value(&'static str, Flag),
    /// A value, which is called so; several are put together with commas.
    Values(&'static str, Flag),
    /// None: it is switched on.
    On(Flag),
    /// None: it is switched off, by a flag that begins with `no-`.
    Off(Flag),
    /// Either.
    OnOrOff(Flag, Flag),
}

/// What the help says about a flag.
pub type Flag = &'static str;

impl Setting {
    /// A setting without any flag, keyword or variable.
    pub(super) const fn named(
        name: &'static str,
        forms: &'static [Form],
        meaning: &'static str,
    ) -> Self {
        Setting {
            name,
            forms,
            also: None,
            meaning,
            unset: None,
            default: Defaults::NONE,
            tracing: Tracing::No,
            flags: None,
            keyword: true,
            variable: true,
            for_children: true,
        }
    }

    /// The name of its variable.
    pub fn variable_name(&self) -> String {
        format!("{PREFIX}{}", self.key())
    }

    /// Its name in a session's settings.
    pub fn key(&self) -> String {
        self.name.to_uppercase()
    }

    /// Its name as the user writes it.
    pub fn label(&self, source: Source) -> String {
        match source {
            Source::Keyword => format!("{}:", self.name),
            Source::Variable => self.variable_name(),
            Source::Flag => match &self.flags {
                Some(Flags {
                    short: Some(short), ..
                }) => format!("-{short}"),
                Some(Flags {
                    takes: Takes::Off(_),
                    ..
                }) => format!("--no-{}", self.long()),
                _ => format!("--{}", self.long()),
            },
        }
    }

    /// Whether the user writes no value.
    pub fn is_switch(&self, source: Source) -> bool {
        let flags = self.flags.as_ref().filter(|_| source == Source::Flag);
        flags.is_some_and(|flags| !matches!(flags.takes, Takes::Value(..) | Takes::Values(..)))
    }

    /// Whether no allowed value begins with a dash. Where any text is allowed, a flag could be
    /// taken for the value of the one in front.
    pub fn refuses_dashes(&self) -> bool {
        let is_free = |form: &Form| matches!(form, Form::OutputPath | Form::Text | Form::Labels);
        !self.forms.iter().any(is_free)
    }

    /// The values that it may have, in a list.
    pub fn values(&self, source: Source) -> String {
        let forms: Vec<_> = self.forms.iter().map(|form| form.listed(source)).collect();
        forms.join(", ")
    }

    /// Its keyword's default, in Ruby's notation.
    pub fn keyword_default(&self) -> String {
        let Some(default) = self.default.keyword else {
            return "nil".into();
        };
        let mut forms = self.forms.iter();
        let same = forms.find(|form| form.listed(Source::Variable) == default);
        same.map_or_else(|| default.into(), |form| form.listed(Source::Keyword))
    }

    /// The name of its long flag, without dashes in front.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }
}

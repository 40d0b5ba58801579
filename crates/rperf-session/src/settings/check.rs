//! Checks one value of a setting against the table. Used by `checked`, and by the command and the
//! extension for values by themselves; any thread.

use super::form::{Form, Given, Source, Value};
use super::method_names;
use super::setting::Setting;
use std::ffi::OsStr;

/// A value that isn't allowed, named as the user wrote it. Settings with their values are texts
/// such as `--calls ruby`, `calls: :ruby` and `RPERF_CALLS=ruby`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSetting {
    /// The setting has no such value.
    #[error("{label} must be {allowed}, not {shown}")]
    NotAllowed {
        /// The setting.
        label: String,
        /// Its values, in words.
        allowed: String,
        /// The value that was given.
        shown: String,
    },
    /// A setting goes only with some values of another one.
    #[error("{given} goes with {allowed}, not with {other}")]
    GoesWith {
        /// The setting that limits the other one, with its value.
        given: String,
        /// The other one, with the values that are left.
        allowed: String,
        /// The other one, with the value that was given.
        other: String,
    },
    /// Two settings were given of which only one can be.
    #[error("{given} can't be combined with {other}: leave one of them out")]
    Apart {
        /// The first, with its value.
        given: String,
        /// The second, with its value.
        other: String,
    },
    /// A file for a new profile is named as another kind of file, and no setting says its format.
    #[error("{given}: a profile is no .{kind}: {remedy}")]
    NoProfile {
        /// The file.
        given: String,
        /// Its extension.
        kind: String,
        /// What to do.
        remedy: String,
    },
    /// A time line is to be written, and no setting says which calls are in it.
    #[error("{given} is a time line: {spans} must say how long its calls take at least")]
    NoSpans {
        /// The format or the file.
        given: String,
        /// The missing setting.
        spans: String,
    },
    /// A time line is to be written, and no call is traced.
    #[error("{given} is a time line: {remedy}")]
    NoTrace {
        /// The format or the file.
        given: String,
        /// What keeps a time line.
        remedy: String,
    },
}

/// A value of `setting`, if it is allowed; `shown` makes a short text of a value that isn't. No
/// value is given by nil, an empty variable, or nothing.
pub fn check(
    setting: &Setting,
    given: &Given<'_>,
    source: Source,
    shown: impl FnOnce() -> String,
) -> Result<Option<Value>, InvalidSetting> {
    if is_nothing(setting, given, source) {
        return Ok(None);
    }
    let invalid = |allowed| InvalidSetting::NotAllowed {
        label: setting.label(source),
        allowed,
        shown: wrong_name(setting, given).map_or_else(shown, |name| quoted(name.as_ref())),
    };
    for form in setting.forms {
        match form.read(given, source) {
            Ok(None) => {}
            Ok(value) => return Ok(value),
            Err(refusal) => return Err(invalid(refusal.to_string())),
        }
    }
    Err(invalid(allowed(setting, source)))
}

/// The name among several that is no method's. Braces may have the comma at which it was cut.
fn wrong_name(setting: &Setting, given: &Given<'_>) -> Option<String> {
    match given {
        Given::Text(text) if setting.forms.contains(&Form::Methods) => {
            let names = method_names::split(text.to_str()?);
            method_names::wrong(&names)
                .filter(|name| !name.is_empty() && !name.contains(['{', '}']))
                .cloned()
        }
        _ => None,
    }
}

fn is_nothing(setting: &Setting, given: &Given<'_>, source: Source) -> bool {
    match given {
        Given::Nil => setting.unset.is_some(),
        Given::Text(text) => {
            let takes_any = |form: &Form| matches!(form, Form::OutputPath | Form::Text);
            source == Source::Variable && text.is_empty() && !setting.forms.iter().any(takes_any)
        }
        _ => false,
    }
}

/// What may be given, in a sentence.
fn allowed(setting: &Setting, source: Source) -> String {
    let forms = setting.forms.iter().copied();
    let possible = forms.filter(|form| form.is_possible());
    let mut phrases: Vec<_> = possible.map(|form| form.described(source)).collect();
    if let Some(word) = setting.also.filter(|_| source != Source::Flag) {
        phrases.push(Form::Word(word).described(source));
    }
    if let (Source::Keyword, Some(unset)) = (source, setting.unset) {
        phrases.push(format!("nil ({unset})"));
    }
    listed(&phrases)
}

fn listed(phrases: &[String]) -> String {
    match phrases {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => phrases.concat(),
    }
}

/// A text as it is shown in messages, which are one line.
pub fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy().replace(char::is_control, " ");
    format!("'{text}'")
}

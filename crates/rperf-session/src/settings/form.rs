//! The forms in which a setting's value may be given: how each is read, and how it is spelled on
//! the command line, in Ruby and in a variable. Used by `checked` and `table`; any
//! thread.

use super::{label_texts, method_names};
use crate::output::{self, Unwritable};
use rperf_format::Format;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a value was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// On the command line, as text.
    Flag,
    /// To `Rperf.start`, as a Ruby object.
    Keyword,
    /// In an RPERF_* variable, or in the settings of a session, as text.
    Variable,
}

/// A value as it was given.
#[derive(Debug, Clone, PartialEq)]
pub enum Given<'a> {
    /// By a flag or a variable.
    Text(&'a OsStr),
    /// `nil`.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// An Integer.
    Integer(i64),
    /// A Symbol's name.
    Symbol(String),
    /// The names of Symbols in an Array.
    Symbols(Vec<String>),
    /// A String, or the path of a Pathname.
    Path(PathBuf),
    /// The path of a descriptor that belongs to Ruby itself.
    ReservedDescriptor,
    /// An Array of Strings.
    Texts(Vec<String>),
    /// A Hash whose keys and values have a text.
    Pairs(Vec<(String, String)>),
    /// Any other object.
    Other,
}

/// A value that is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// On or off.
    Bool(bool),
    /// A number.
    Integer(u32),
    /// A word, one of those that are allowed.
    Word(&'static str),
    /// Some of them.
    Words(Vec<&'static str>),
    /// `false` where other values are numbers.
    Off,
    /// The absolute path of a file that can be written, or of a directory.
    Path(PathBuf),
    /// The number of a TCP port at the loopback address.
    Loopback(u16),
    /// Any text.
    Text(OsString),
    /// A time, in µs.
    Time(u32),
    /// Names of methods.
    Methods(Vec<String>),
    /// Labels: keys and values.
    Labels(BTreeMap<String, String>),
}

/// A form that a setting's values may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// On.
    True,
    /// Off.
    False,
    /// A fixed word; a Symbol in Ruby.
    Word(&'static str),
    /// Any of these words, with commas between several; in Ruby a Symbol, or an Array of them.
    Words(&'static [&'static str]),
    /// A fixed word, allowed only where timers can signal; a Symbol in Ruby.
    WordWithTimerSignals(&'static str),
    /// A whole number in a range, of these things.
    Number(u32, u32, &'static str),
    /// No signal.
    NoSignal,
    /// A real-time signal, where timers can signal.
    TimerSignal,
    /// The path of a file that can be written.
    OutputPath,
    /// The absolute path of a directory.
    Directory,
    /// A TCP port at the loopback address.
    Loopback,
    /// Any text.
    Text,
    /// A time with its unit: `1ms`; a String in Ruby.
    Time,
    /// Names of methods, with commas between several; a String or an Array in Ruby.
    Methods,
    /// Labels: `KEY=VALUE`, with commas between several; a Hash in Ruby.
    Labels,
}

/// What a value of the right form must be, and isn't.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The file can't be written.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// A zero byte would end the setting in a session's settings.
    #[error("labels without a zero byte")]
    ZeroByte,
}

const OFF: &str = "false";

/// What the address of a TCP port begins with.
const LOOPBACK: &str = "tcp://127.0.0.1:";

/// The real-time signals, where timers can signal: the others have a meaning to programs.
fn timer_signals() -> Option<(u32, u32)> {
    #[cfg(target_os = "linux")]
    return Some((libc::SIGRTMIN() as u32, libc::SIGRTMAX() as u32));
    #[cfg(not(target_os = "linux"))]
    None
}

/// The words for formats come from those who write them.
pub(super) const FORMATS: [Form; Format::ALL.len()] = {
    let mut forms = [Form::True; Format::ALL.len()];
    let mut number = 0;
    while number < forms.len() {
        forms[number] = Form::Word(Format::ALL[number].name());
        number += 1;
    }
    forms
};

impl Form {
    /// Whether values can have this form on this system.
    pub fn is_possible(self) -> bool {
        match self {
            Form::WordWithTimerSignals(_) | Form::TimerSignal => timer_signals().is_some(),
            _ => true,
        }
    }

    /// The value, if `given` has this form.
    pub fn read(self, given: &Given<'_>, source: Source) -> Result<Option<Value>, Refusal> {
        if !self.is_possible() {
            return Ok(None);
        }
        Ok(match self {
            Form::True => is_bool(given, true).then_some(Value::Bool(true)),
            Form::False => is_bool(given, false).then_some(Value::Bool(false)),
            Form::Word(word) | Form::WordWithTimerSignals(word) => match given {
                Given::Text(text) => (*text == word).then_some(Value::Word(word)),
                Given::Symbol(name) => (name == word).then_some(Value::Word(word)),
                _ => None,
            },
            Form::Words(words) => match given {
                Given::Text(text) => text.to_str().and_then(|it| some_of(words, it.split(','))),
                Given::Symbol(name) => some_of(words, [&**name].into_iter()),
                Given::Symbols(names) => some_of(words, names.iter().map(String::as_str)),
                _ => None,
            },
            Form::Number(least, most, _) => whole_number(given, least, most, source),
            Form::TimerSignal => {
                timer_signals().and_then(|(least, most)| whole_number(given, least, most, source))
            }
            Form::NoSignal => match given {
                Given::Text(text) => (*text == OFF).then_some(Value::Off),
                Given::Bool(false) => Some(Value::Off),
                _ => None,
            },
            Form::OutputPath => read_path(given, source)?.map(Value::Path),
            Form::Directory => match given {
                Given::Text(text) => read_directory(text),
                _ => None,
            },
            Form::Loopback => match given {
                Given::Text(text) => text.to_str().and_then(loopback).map(Value::Loopback),
                _ => None,
            },
            Form::Text => match given {
                Given::Text(text) => Some(Value::Text((*text).to_os_string())),
                _ => None,
            },
            Form::Time => match given {
                Given::Text(text) => text.to_str().and_then(read_time),
                Given::Path(text) => text.to_str().and_then(read_time),
                _ => None,
            },
            Form::Methods => read_methods(given),
            Form::Labels => match given {
                Given::Text(text) => text.to_str().map_or(Ok(None), read_labels)?,
                Given::Pairs(pairs) => labels(pairs.iter().cloned())?,
                _ => None,
            },
        })
    }

    /// What the form allows, in a sentence.
    pub fn described(self, source: Source) -> String {
        match self {
            Form::True | Form::False | Form::Word(_) | Form::WordWithTimerSignals(_) => {
                self.listed(source)
            }
            Form::Words(_) if source == Source::Keyword => {
                format!("{} or an Array of them", self.listed(source))
            }
            Form::Words(_) => format!("{} (with commas between several)", self.listed(source)),
            Form::Number(least, most, of) => {
                format!("a whole number from {least} to {most} ({of})")
            }
            Form::NoSignal if timer_signals().is_none() => {
                format!("{OFF} (this system has no timer signals)")
            }
            Form::NoSignal => format!("{OFF} (no signal)"),
            Form::TimerSignal => timer_signals().map_or_else(String::new, |(least, most)| {
                format!("a number from {least} to {most} (a real-time signal)")
            }),
            Form::OutputPath => "the path of a file".into(),
            Form::Directory => "the absolute path of a directory".into(),
            Form::Loopback => format!("{LOOPBACK}PORT"),
            Form::Text => "text".into(),
            Form::Time => "a time of 1us to 1h, such as 500us, 1ms or 2s".into(),
            Form::Methods => "methods or their files, such as Order#total or app/**".into(),
            Form::Labels if source == Source::Keyword => "a Hash of labels".into(),
            Form::Labels => "labels such as release=1.2,host=web1".into(),
        }
    }

    /// The form's text in a list.
    pub fn listed(self, source: Source) -> String {
        match (self, source) {
            (Form::True, _) => bool_text(true, source).into(),
            (Form::False, _) => bool_text(false, source).into(),
            (Form::Word(word) | Form::WordWithTimerSignals(word), Source::Keyword) => symbol(word),
            (Form::Word(word) | Form::WordWithTimerSignals(word), _) => word.into(),
            (Form::Words(words), _) => {
                let words = words.iter().map(|word| Form::Word(word).listed(source));
                words.collect::<Vec<_>>().join(", ")
            }
            (Form::Number(least, most, _), _) => format!("{least} to {most}"),
            (Form::NoSignal, _) => OFF.into(),
            (Form::TimerSignal, _) => "number".into(),
            (Form::OutputPath | Form::Directory, _) => "path".into(),
            (Form::Loopback, _) => format!("{LOOPBACK}PORT"),
            (Form::Text, _) => "text".into(),
            (Form::Time, _) => "time".into(),
            (Form::Methods, Source::Keyword) => "a String, an Array".into(),
            (Form::Methods, _) => "METHOD,...".into(),
            (Form::Labels, Source::Keyword) => "a Hash".into(),
            (Form::Labels, _) => "KEY=VALUE,...".into(),
        }
    }
}

impl Value {
    /// The value as it is given to `source`: in Ruby's notation to `Rperf.start`, else as text.
    pub fn spelled(&self, source: Source) -> OsString {
        match self {
            Value::Bool(on) => bool_text(*on, source).into(),
            Value::Integer(number) => number.to_string().into(),
            Value::Word(word) if source == Source::Keyword => symbol(word).into(),
            Value::Word(word) => (*word).into(),
            Value::Words(words) if source == Source::Keyword => {
                let words: Vec<_> = words.iter().map(|word| symbol(word)).collect();
                format!("[{}]", words.join(", ")).into()
            }
            Value::Words(words) => words.join(",").into(),
            Value::Off => OFF.into(),
            Value::Path(path) => path.into(),
            Value::Loopback(number) => format!("{LOOPBACK}{number}").into(),
            Value::Text(text) => text.clone(),
            Value::Time(micros) if micros % 1_000 == 0 => format!("{}ms", micros / 1_000).into(),
            Value::Time(micros) => format!("{micros}us").into(),
            Value::Methods(names) if source == Source::Keyword => {
                format!("'{}'", names.join(",")).into()
            }
            Value::Methods(names) => names.join(",").into(),
            Value::Labels(labels) => label_texts::written(labels).into(),
        }
    }
}

/// A word as a Symbol of Ruby.
fn symbol(word: &str) -> String {
    if word.contains('=') {
        return format!(":\"{word}\"");
    }
    format!(":{word}")
}

fn bool_text(on: bool, source: Source) -> &'static str {
    match (on, source) {
        (true, Source::Keyword) => "true",
        (false, Source::Keyword) => "false",
        (true, _) => "1",
        (false, _) => "0",
    }
}

fn is_bool(given: &Given<'_>, on: bool) -> bool {
    match given {
        Given::Text(text) => *text == bool_text(on, Source::Variable),
        Given::Bool(value) => *value == on,
        _ => false,
    }
}

/// The words that were given, in our order; `None` if there are others, or none.
fn some_of<'a>(
    words: &[&'static str],
    given: impl Iterator<Item = &'a str> + Clone,
) -> Option<Value> {
    if given.clone().next().is_none() || !given.clone().all(|it| words.contains(&it)) {
        return None;
    }
    let words = words.iter().copied();
    let chosen = words.filter(|word| given.clone().any(|it| it == *word));
    Some(Value::Words(chosen.collect()))
}

fn whole_number(given: &Given<'_>, least: u32, most: u32, source: Source) -> Option<Value> {
    let number: i64 = match given {
        Given::Text(text) if source == Source::Variable => loose_number(text.to_str()?)?,
        Given::Text(text) => text.to_str()?.parse().ok()?,
        Given::Integer(number) => *number,
        _ => return None,
    };
    let number = u32::try_from(number).ok()?;
    (least..=most)
        .contains(&number)
        .then_some(Value::Integer(number))
}

/// A decimal number with what else Ruby's `Integer` allows: blanks around it, and `_` between
/// digits.
fn loose_number(text: &str) -> Option<i64> {
    let is_blank = |it: char| it.is_ascii_whitespace() || it == '\x0b';
    let text = text.trim_matches(is_blank);
    let ends_in_digit = |part: &str| part.ends_with(|it: char| it.is_ascii_digit());
    let is_number = text.split('_').all(ends_in_digit);
    is_number.then(|| text.replace('_', "").parse().ok())?
}

/// The longest time, in µs: an hour.
const LONGEST_TIME: u32 = 3_600_000_000;

/// A number with the unit behind it.
fn read_time(text: &str) -> Option<Value> {
    let text = text.trim();
    let unit = text.find(|it: char| it.is_ascii_alphabetic() || it == 'µ')?;
    let (number, unit) = text.split_at(unit);
    let micros_per = match unit {
        "us" | "µs" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 6e7,
        "h" => 3.6e9,
        _ => return None,
    };
    let micros = number.trim().parse::<f64>().ok()? * micros_per;
    let allowed = 1.0..=f64::from(LONGEST_TIME);
    allowed
        .contains(&micros)
        .then(|| Value::Time(micros.round() as u32))
}

/// `None` for what is no path at all.
fn read_path(given: &Given<'_>, source: Source) -> Result<Option<PathBuf>, Unwritable> {
    let path = match given {
        Given::Text(text) => Path::new(text),
        Given::Path(path) => path,
        Given::ReservedDescriptor => return Err(Unwritable::Closed),
        _ => return Ok(None),
    };
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return Ok(None);
    }
    match source {
        // The programs that the command starts write to its descriptors, too.
        Source::Flag => output::writable(path, true),
        Source::Keyword | Source::Variable => output::writable(&output::normalized(path)?, false),
    }
    .map(Some)
}

/// Whether the directory is there is seen when it is used.
fn read_directory(text: &OsStr) -> Option<Value> {
    let path = Path::new(text);
    let is_path = path.is_absolute() && !text.as_bytes().contains(&0);
    is_path.then(|| Value::Path(path.into()))
}

/// The number of the TCP port in such an address: others on the network can't reach it.
pub fn loopback(text: &str) -> Option<u16> {
    let number = text.strip_prefix(LOOPBACK)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse().ok().filter(|_| is_number)
}

/// `None` for what names no methods.
fn read_methods(given: &Given<'_>) -> Option<Value> {
    let names = match given {
        Given::Text(text) => method_names::split(text.to_str()?),
        Given::Path(path) => method_names::split(path.to_str()?),
        Given::Texts(names) => names.clone(),
        _ => return None,
    };
    method_names::are_valid(&names).then_some(Value::Methods(names))
}

/// `None` if a label has no key.
fn labels(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Option<Value>, Refusal> {
    let labels: BTreeMap<_, _> = pairs.into_iter().collect();
    let has_zero = |text: &String| text.contains('\0');
    if labels.keys().chain(labels.values()).any(has_zero) {
        return Err(Refusal::ZeroByte);
    }
    Ok((!labels.contains_key("")).then_some(Value::Labels(labels)))
}

fn read_labels(text: &str) -> Result<Option<Value>, Refusal> {
    label_texts::read(text).map_or(Ok(None), labels)
}

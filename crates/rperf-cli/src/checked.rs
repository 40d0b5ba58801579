//! Values that several commands take, checked. Used by the options of all commands, on the
//! command's only thread.

use crate::refusal::Refusal;
use rperf_format::Format;
use rperf_session::settings::{FORMAT, Given, OUTPUT, Source, Value, check, quoted};
use std::path::{Path, PathBuf};

/// The format with this name.
pub fn parse_format(text: &str) -> Result<Format, Refusal> {
    let given = Given::Text(text.as_ref());
    let value = check(&FORMAT, &given, Source::Flag, || quoted(text.as_ref()))?;
    match value {
        Some(Value::Word(name)) => Ok(Format::from_name(name).unwrap_or_default()),
        _ => Ok(Format::default()),
    }
}

/// The absolute path of `output`, if a file can be written there.
pub fn writable(output: impl AsRef<Path>) -> Result<PathBuf, Refusal> {
    let text = output.as_ref().as_os_str();
    let value = check(&OUTPUT, &Given::Text(text), Source::Flag, || quoted(text))?;
    match value {
        Some(Value::Path(path)) => Ok(path),
        _ => Ok(text.into()),
    }
}

/// The number of a process, as the user has given it.
pub fn pid(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a process is named by its number, which 'rperf ps' lists".into())
}

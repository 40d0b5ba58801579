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

/// Extensions of kinds of files that rperf never writes.
const NOT_WRITTEN: [&str; 6] = ["csv", "gif", "jpeg", "jpg", "pdf", "png"];

/// The extension of a file that is to be written, in small letters, if rperf writes such files.
pub fn kind_of_file(path: &Path) -> Result<String, Refusal> {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or("");
    let kind = extension.to_ascii_lowercase();
    match NOT_WRITTEN.contains(&&*kind) {
        true => Err(Refusal::usage(format!(
            "-o {}: rperf writes no .{kind}: .svg is a picture, .html the viewer's page, .json and \
             .txt are text",
            path.display()
        ))),
        false => Ok(kind),
    }
}

/// Refuses a file for a new profile that is named as one that only reports are written to: it would
/// be no such file, and nobody would know the profile.
pub fn refuse_reports_file(path: &Path) -> Result<(), Refusal> {
    let kind = kind_of_file(path)?;
    let report = path.with_extension(&kind);
    if kind != "svg" && Format::of_report(&report) == Format::from_path(&report) {
        return Ok(());
    }
    let profile = path.with_extension("pb.gz");
    let profile = profile.display();
    Err(Refusal::usage(format!(
        "-o {}: a profile is no .{kind}: record into {profile}, then 'rperf report {profile} -o {}'",
        path.display(),
        report.display()
    )))
}

/// What is said of a text that is the number of no process.
pub const NO_PID: &str = "processes have numbers from 1 on, which 'rperf ps' lists";

/// The number of a process, as the user has given it.
pub fn pid(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| NO_PID.into())
}

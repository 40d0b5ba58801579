//! Rows of a program that is asked by its PID, or of a file that they were kept in: what `rperf memory`,
//! `rperf heap` and `rperf leak` share. On the main thread.

use crate::output::{shown, write_whole};
use crate::refusal::{FAILURE, Refusal, say};
use crate::shared_args::checked::{kind_of_rows, writable};
use rperf_session::input;
use serde::de::IgnoredAny;
use std::ffi::OsStr;
use std::fmt::Display;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is said of a file that was cut.
const CUT: &str = "it ends early: it was cut, so write it again";

/// Whether it is a process: what has digits only.
pub fn is_number(target: &OsStr) -> bool {
    let text = target.as_encoded_bytes();
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// How many rows -n asks for; 0: all.
pub fn rows(text: &str) -> Result<usize, Refusal> {
    match text.parse() {
        Ok(0) => Ok(usize::MAX),
        Ok(rows) => Ok(rows),
        Err(_) => Err(Refusal::usage(format!(
            "-n {text}: rows are a number from 0 on"
        ))),
    }
}

/// Refuses the options that are given where only files are read, because they say how a program is asked.
pub fn refuse_for_files(
    target: &OsStr,
    base: Option<&OsStr>,
    options: [(bool, &str); 2],
) -> Result<(), Refusal> {
    if is_number(target) || base.is_some_and(is_number) {
        return Ok(());
    }
    match options.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(Refusal::usage(format!(
            "{option} is for a program that is asked, not for a file: leave it out"
        ))),
        None => Ok(()),
    }
}

/// The file that -o names for the rows of a command that writes JSON only; `None`: stdout. `is_json`: an option asks
/// for JSON, whatever the file's name is.
pub fn output(
    command: &str,
    path: Option<&OsStr>,
    is_json: bool,
) -> Result<Option<PathBuf>, Refusal> {
    let Some(path) = path.filter(|it| *it != "-") else {
        return Ok(None);
    };
    if !is_json {
        kind_of_rows(command, Path::new(path), false)?;
    }
    writable(path).map(Some)
}

/// Keeps rows in a file; `what` says in a few words how much they tell of.
pub fn write(path: &Path, json: &str, what: &str) -> Result<i32, Refusal> {
    let written = write_whole(path, json.as_bytes());
    written.map_err(|error| Refusal {
        message: format!("can't write {}: {error}", path.display()),
        status: FAILURE,
    })?;
    say(&format!("wrote {} ({what})", shown(path).display()));
    Ok(0)
}

/// Whether these are the begin of a JSON object.
fn is_cut(bytes: &[u8]) -> bool {
    let is_object = bytes.trim_ascii_start().starts_with(b"{");
    let read = serde_json::from_slice::<IgnoredAny>(bytes);
    is_object && read.is_err_and(|error| error.is_eof())
}

/// The bytes of such a file; `None` if it has more than `most`.
pub fn read(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Refusal> {
    let (file, _) = input::open(path).map_err(|error| Refusal::usage(error.to_string()))?;
    let mut bytes = Vec::new();
    let read_whole = file.take(most + 1).read_to_end(&mut bytes);
    read_whole.map_err(|error| refused(path, &error))?;
    if bytes.len() as u64 <= most && is_cut(&bytes) {
        return Err(refused(path, &CUT));
    }
    Ok(Some(bytes).filter(|it| it.len() as u64 <= most))
}

/// A file that isn't taken.
pub fn refused(path: &Path, error: &dyn Display) -> Refusal {
    Refusal::usage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::is_cut;

    #[test]
    fn the_begin_of_an_object_is_a_file_that_was_cut() {
        let whole = br#" {"kind":"rperf heap","classes":[{"name":"A"}]}"#;
        assert!((2..whole.len()).all(|end| is_cut(&whole[..end])));
        for other in [&whole[..], b"", b"[1, 2", b"{]", b"rperf", b"{} {"] {
            assert!(!is_cut(other), "{other:?}");
        }
    }
}

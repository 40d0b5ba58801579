//! Writes the profile of a session that ends, so that it doesn't get lost. Used by the command, and
//! by the extension on the thread that ends a session.

use super::file::write;
use super::write_signals::without_write_signals;
use crate::directory;
use nix::errno::Errno;
use rperf_format::{Format, FormatError, TextOptions};
use rperf_model::Profile;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A profile that couldn't be written where it should be, and what has become of it.
#[derive(Debug, thiserror::Error)]
pub enum Misplaced {
    /// The profile is in another file.
    #[error("can't write the profile to {} ({reason}); it is in {} (pprof)", path.display(), instead.display())]
    Elsewhere {
        /// Where it should be.
        path: PathBuf,
        /// Why it isn't.
        reason: WriteError,
        /// Where it is.
        instead: PathBuf,
    },
    /// The profile is lost: it is in no file.
    #[error(
        "can't write the profile to {} ({reason}); it is lost: neither can a file in \
         {} be written ({second}); free some space or set TMPDIR",
        path.display(), instead.display()
    )]
    Lost {
        /// Where it should be.
        path: PathBuf,
        /// Why it isn't.
        reason: WriteError,
        /// The directory where it should be instead.
        instead: PathBuf,
        /// Why it isn't there either.
        second: WriteError,
    },
}

/// Why a profile couldn't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file can't be written.
    #[error("{}", words_of_write(.0))]
    Io(#[from] io::Error),
    /// The format can't hold it.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// The system's words for an error of writing; of a pipe, ours, which say more.
fn words_of_write(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENXIO) => "it has no reader".to_string(),
        Some(libc::ETIMEDOUT) => "its reader has stopped reading, or reads too slowly".to_string(),
        _ => system_words(error),
    }
}

/// The system's words for an error, without its number.
pub fn system_words(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => Errno::from_raw(number).desc().to_string(),
        None => error.to_string(),
    }
}

/// Writes a profile; a format that isn't given goes by the path.
pub fn write_profile(
    profile: &Profile,
    path: &Path,
    format: Option<Format>,
    options: TextOptions,
) -> Result<(), WriteError> {
    let format = format.unwrap_or_else(|| Format::from_path(path));
    let mut content = Vec::new();
    rperf_format::write(profile, format, options, &mut content)?;
    Ok(write(path, &content)?)
}

/// Writes a profile that must not get lost: if it can't be written to `path`, to a new file in the
/// temporary directory, as pprof.
pub fn deliver(
    profile: &Profile,
    path: &Path,
    format: Option<Format>,
    options: TextOptions,
) -> Result<(), Misplaced> {
    let Err(reason) = write_profile(profile, path, format, options) else {
        return Ok(());
    };
    let path = path.to_path_buf();
    let directory = directory::temporary();
    Err(match write_anew(profile, &directory) {
        Ok(instead) => Misplaced::Elsewhere {
            path,
            reason,
            instead,
        },
        Err(second) => Misplaced::Lost {
            path,
            reason,
            instead: directory,
            second,
        },
    })
}

/// Writes the profile to a file in `directory` that nobody has made before, for this user only.
fn write_anew(profile: &Profile, directory: &Path) -> Result<PathBuf, WriteError> {
    let mut content = Vec::new();
    rperf_format::write(profile, Format::Pprof, TextOptions::default(), &mut content)?;
    let mut file = tempfile::Builder::new()
        .prefix(&format!("rperf-{}-", std::process::id()))
        .suffix(".pb.gz")
        .make_in(directory, |path| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600).open(path)
        })?;
    without_write_signals(|| file.as_file_mut().write_all(&content))?;
    let (_, path) = file.keep().map_err(|error| error.error)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_has_a_reader() {
        for (number, words) in [
            (libc::ENXIO, "it has no reader"),
            (
                libc::ETIMEDOUT,
                "its reader has stopped reading, or reads too slowly",
            ),
            (libc::EFBIG, "File too large"),
        ] {
            let error = || io::Error::from_raw_os_error(number);
            assert_eq!(WriteError::Io(error()).to_string(), words);
            assert_eq!(system_words(&error()) == words, number == libc::EFBIG);
        }
    }
}

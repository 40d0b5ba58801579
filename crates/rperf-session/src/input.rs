//! Reads the profiles that a user names. Used by `rperf report` and `rperf diff`, and by the extension
//! for `Rperf.load`; any thread.

use crate::settings::DEFAULT_FILE;
use rperf_format::ReadError;
use rperf_model::Profile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Why there is no profile in a file.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The file can't be read.
    #[error("can't read {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: Unreadable,
    },
    /// The file's content is no profile that can be read.
    #[error("{}: {error}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        error: ReadError,
    },
}

/// Why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file isn't there; it is the one that `rperf record` writes by default.
    #[error("there is no such file; 'rperf record' writes one")]
    NotRecorded,
    /// The file isn't there.
    #[error("there is no such file")]
    NotFound,
    /// Its permissions don't allow it.
    #[error("permission denied")]
    PermissionDenied,
    /// The path names a directory.
    #[error("it is a directory")]
    Directory,
    /// The path names a pipe or a device.
    #[error("it is no regular file")]
    NoRegularFile,
    /// The system can't.
    #[error(transparent)]
    Io(io::Error),
}

/// The file and its size.
pub fn open(path: &Path) -> Result<(File, u64), InputError> {
    open_as(OpenOptions::new().read(true), path)
}

fn open_as(options: &OpenOptions, path: &Path) -> Result<(File, u64), InputError> {
    let refuse = |reason| InputError::File {
        path: path.into(),
        reason,
    };
    let file = options.open(path).map_err(|error| {
        refuse(match error.kind() {
            io::ErrorKind::NotFound if path == Path::new(DEFAULT_FILE) => Unreadable::NotRecorded,
            io::ErrorKind::NotFound => Unreadable::NotFound,
            io::ErrorKind::PermissionDenied => Unreadable::PermissionDenied,
            _ => Unreadable::Io(error),
        })
    })?;
    let metadata = file.metadata();
    let metadata = metadata.map_err(|error| refuse(Unreadable::Io(error)))?;
    if metadata.is_dir() {
        return Err(refuse(Unreadable::Directory));
    }
    Ok((file, metadata.len()))
}

/// The profile in `input`, which is the file at `path`.
pub fn decode(input: &mut dyn Read, path: &Path) -> Result<Profile, InputError> {
    rperf_format::pprof::read(input).map_err(|error| InputError::Content {
        path: path.into(),
        error: match error {
            ReadError::OtherKind(kind) => ReadError::OtherKind(kind.at(path)),
            error => error,
        },
    })
}

/// The profile in this file. What is no file, and may never end, is refused.
#[expect(
    clippy::disallowed_methods,
    reason = "what is opened is looked at once more"
)]
pub fn read_profile(path: &Path) -> Result<Profile, InputError> {
    let refusal = || InputError::File {
        path: path.into(),
        reason: Unreadable::NoRegularFile,
    };
    // To open a device can do something to it.
    if fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        return Err(refusal());
    }
    // A pipe that has come meanwhile would be waited for until somebody writes to it.
    let mut options = OpenOptions::new();
    let (file, _) = open_as(options.read(true).custom_flags(libc::O_NONBLOCK), path)?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(refusal());
    }
    decode(&mut BufReader::new(file), path)
}

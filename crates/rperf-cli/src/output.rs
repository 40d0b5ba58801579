//! Writes files for `rperf report` and `rperf diff`: signals that end them wait until a file is
//! whole, so that no part of it stays behind. Also the names of written files for messages. On Ruby's
//! main thread.

use crate::signals;
use rperf_session::output::{descriptor_of, write, write_streaming};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes `content` to `path`. For a pipe's reader nobody waits.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    whole(path, || write(path, content))
}

fn whole<T>(path: &Path, write: impl FnOnce() -> T) -> T {
    match is_file(path) {
        true => signals::hold_during(write),
        false => write(),
    }
}

/// Whether what is written to `path` becomes a file: it is no pipe, device or descriptor.
#[expect(
    clippy::disallowed_methods,
    reason = "decides on signals only: `output::file` looks for itself"
)]
pub fn is_file(path: &Path) -> bool {
    let is_file = fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    is_file && descriptor_of(path).is_none()
}

/// The counterpart of [`write_whole`] for content that is too much to be held in memory.
pub fn write_whole_streaming<E: From<io::Error>>(
    path: &Path,
    produce: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    whole(path, || write_streaming(path, produce))
}

/// The path as the user would write it.
pub fn shown(path: &Path) -> PathBuf {
    std::env::current_dir()
        .ok()
        .and_then(|directory| path.strip_prefix(directory).ok())
        .unwrap_or(path)
        .to_path_buf()
}

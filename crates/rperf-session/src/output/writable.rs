//! Whether a file can be written, to be known before anything is profiled for it. Used for the
//! output setting and by `rperf report` and `diff`; any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "what it says is advice: `file.rs` finds out by writing"
)]

use super::foreign::{Found, found};
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What a path must be for a file to be written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// The path is relative, and the current directory is gone.
    #[error("an absolute path, as the current directory is gone")]
    NoCurrentDirectory,
    /// The path names a descriptor that is closed, here or on exec, or open for reading only.
    #[error("open for writing")]
    Closed,
    /// The path names a directory.
    #[error("a file, and that is a directory")]
    Directory,
    /// The path ends with a `/`, so it can only name a directory, but there is none.
    #[error("a file, without a '/' at the end")]
    TrailingSlash,
    /// The directory isn't there.
    #[error("in a directory that exists")]
    NoDirectory,
    /// The directory's permissions don't allow it.
    #[error("in a directory that can be written to")]
    ReadOnlyDirectory,
    /// Another user has made what is there, in a directory in which everybody can make files.
    #[error("a file of your own, as everybody can make files in its directory")]
    Foreign,
    /// The file's permissions don't allow it.
    #[error("a file that can be written")]
    ReadOnly,
}

/// The absolute path of `path` as Ruby's File.absolute_path has it: `..` takes away the part in
/// front of it, whatever that is, and a `/` at the end means nothing.
pub fn normalized(path: &Path) -> Result<PathBuf, Unwritable> {
    let path = absolute(path)?;
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = normal.pop(),
            other => normal.push(other),
        }
    }
    Ok(normal)
}

fn absolute(path: &Path) -> Result<PathBuf, Unwritable> {
    std::path::absolute(path).map_err(|_| Unwritable::NoCurrentDirectory)
}

/// The absolute path of `path`, if a file can be written there. `inherited`: a descriptor must be
/// one that the programs started here can write to.
pub fn writable(path: &Path, inherited: bool) -> Result<PathBuf, Unwritable> {
    let path = absolute(path)?;
    let found = found(&path).ok_or(Unwritable::Foreign)?;
    if let Found::Descriptor(descriptor) = found {
        let is_open = match inherited {
            true => descriptor.is_inherited_for_writing(),
            false => descriptor.is_open_for_writing(),
        };
        return is_open.then_some(path).ok_or(Unwritable::Closed);
    }
    if path.is_dir() {
        return Err(Unwritable::Directory);
    }
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(Unwritable::TrailingSlash);
    }
    if path.exists() && !may_write(&path) {
        return Err(Unwritable::ReadOnly);
    }
    // A device or a pipe is opened as it is; a file is made anew next to its old self.
    if path.exists() && !path.is_file() {
        return Ok(path);
    }
    let directory = path.parent().unwrap_or(&path);
    if !directory.is_dir() {
        return Err(Unwritable::NoDirectory);
    }
    if !may_write(directory) {
        return Err(Unwritable::ReadOnlyDirectory);
    }
    Ok(path)
}

/// With the effective ids, as when the file is written.
fn may_write(path: &Path) -> bool {
    faccessat(AT_FDCWD, path, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalized_as_ruby_does_it() {
        let here = std::env::current_dir().expect("a directory");
        for (path, normal) in [
            ("no/../y", here.join("y")),
            ("no/", here.join("no")),
            ("./a//b/./c", here.join("a/b/c")),
            ("/../a/../..", "/".into()),
            ("~/a", here.join("~/a")),
        ] {
            assert_eq!(normalized(Path::new(path)), Ok(normal), "{path}");
        }
    }

    #[test]
    fn the_name_of_a_directory_that_is_not_there_is_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("no/");
        assert_eq!(writable(&path, false), Err(Unwritable::TrailingSlash));
        let path = directory.path().join("no");
        assert_eq!(writable(&path, false), Ok(path));
    }
}

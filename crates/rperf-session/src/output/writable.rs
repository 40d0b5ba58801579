//! Whether a file can be written, to be known before anything is profiled for it. Used for the
//! output setting and by `rperf report` and `diff`; any thread.

use super::descriptor::Descriptor;
use nix::unistd::{AccessFlags, access};
use std::path::{Path, PathBuf};

/// What a path must be for a file to be written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unwritable {
    /// It is relative, and the current folder is gone.
    #[error("an absolute path, as the current folder is gone")]
    NoCurrentFolder,
    /// It names a descriptor that is closed, or open for reading only.
    #[error("open for writing")]
    Closed,
    /// It is a folder.
    #[error("a file, and that is a folder")]
    Folder,
    /// The folder isn't there.
    #[error("in a folder that exists")]
    NoFolder,
    /// The folder's permissions don't allow it.
    #[error("in a folder that can be written to")]
    ReadOnlyFolder,
    /// The file's permissions don't allow it.
    #[error("a file that can be written")]
    ReadOnly,
}

/// The absolute path of `path`, if a file can be written there. `inherited`: a descriptor must be
/// one that the programs started here can write to.
pub fn writable(path: &Path, inherited: bool) -> Result<PathBuf, Unwritable> {
    let path = std::path::absolute(path).map_err(|_| Unwritable::NoCurrentFolder)?;
    if let Some(descriptor) = Descriptor::named_by(&path) {
        let is_open = match inherited {
            true => descriptor.is_inherited_for_writing(),
            false => descriptor.is_open_for_writing(),
        };
        return is_open.then_some(path).ok_or(Unwritable::Closed);
    }
    if path.is_dir() {
        return Err(Unwritable::Folder);
    }
    if path.exists() && !may_write(&path) {
        return Err(Unwritable::ReadOnly);
    }
    // A device or a pipe is opened as it is; a file is made anew next to its old self.
    if path.exists() && !path.is_file() {
        return Ok(path);
    }
    let folder = path.parent().unwrap_or(&path);
    if !folder.is_dir() {
        return Err(Unwritable::NoFolder);
    }
    if !may_write(folder) {
        return Err(Unwritable::ReadOnlyFolder);
    }
    Ok(path)
}

fn may_write(path: &Path) -> bool {
    access(path, AccessFlags::W_OK).is_ok()
}

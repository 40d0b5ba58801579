//! A socket with a name, at which `rperf serve` answers. On the main thread.

use nix::sys::stat::{Mode, umask};
use nix::unistd::Uid;
use rperf_session::place::checked;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Rights that nobody has: the socket is for its user only.
const NOT_PRIVATE: Mode = Mode::from_bits_truncate(0o177);

/// A socket whose name goes with this, if the name is still its own.
pub struct Bound {
    listener: UnixListener,
    path: PathBuf,
    made: Option<(u64, u64)>,
}

impl Bound {
    /// Listens at `path`, which is absolute, in a directory in which nobody else can exchange it.
    pub fn at(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let path = checked(directory).map_err(io::Error::other)?.join(name);
        remove_dead(&path)?;
        // No other thread makes files yet.
        let before = umask(NOT_PRIVATE);
        let bound = UnixListener::bind(&path);
        umask(before);
        let listener = bound?;
        listener.set_nonblocking(true)?;
        let made = identity(&path);
        Ok(Bound {
            listener,
            path,
            made,
        })
    }

    /// The socket.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.made.is_some() && self.made == identity(&self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Which file it is.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let number = |found: Metadata| (found.dev(), found.ino());
    fs::symlink_metadata(path).ok().map(number)
}

/// Removes a socket of this user's that nobody listens at any more: it is in the way.
fn remove_dead(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    let is_own = found.file_type().is_socket() && found.uid() == Uid::effective().as_raw();
    let error = UnixStream::connect(path).err();
    match is_own && error.is_some_and(|it| it.kind() == io::ErrorKind::ConnectionRefused) {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_name_goes_with_it_and_not_that_of_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.sock");
        drop(UnixListener::bind(&path).expect("a dead one"));
        let bound = Bound::at(&path).expect("bound");
        assert_eq!(
            fs::metadata(&path).expect("it is there").mode() & 0o777,
            0o600
        );
        assert!(Bound::at(&path).is_err(), "somebody listens");
        drop(bound);
        assert!(!path.exists());
        let bound = Bound::at(&path).expect("bound");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "another's").expect("written");
        drop(bound);
        assert!(path.exists() && Bound::at(&path).is_err());
    }
}

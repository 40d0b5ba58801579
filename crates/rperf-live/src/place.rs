//! Where ports are: the folder, and the name of a program's socket in it. Used by the port and by
//! `find`; any thread.

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use rperf_session::directory::{self, DirectoryError};
use rperf_session::process_id::ProcessId;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the name of a socket ends with.
const EXTENSION: &str = ".sock";

/// How long others may hold the folder's lock: they have little to do, but may be stopped.
const PATIENCE: Duration = Duration::from_secs(1);

/// Others may remove the empty user's folder meanwhile.
const ATTEMPTS: usize = 10;

/// Others may write to it, and remove what isn't theirs.
const WRITABLE_BY_OTHERS: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Why a port can't be at a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The user's folder can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Another folder was asked for, which isn't there.
    #[error("{} is no folder that exists", .0.display())]
    Missing(PathBuf),
    /// Another folder was asked for, where others could put something in the socket's place.
    #[error("others may change what is in {}; choose a folder that only its owner can write to", .0.display())]
    NotSafe(PathBuf),
    /// Its lock is held.
    #[error("another process keeps the lock of {}", .0.display())]
    Locked(PathBuf),
    /// The system refuses.
    #[error("can't listen in {} ({error})", folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// The place of a program's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    folder: PathBuf,
    /// It is the user's, which goes with the last thing in it.
    is_users: bool,
    process: ProcessId,
}

impl Place {
    /// That of this program: in the user's folder, or in `folder`, which is absolute.
    pub fn own(folder: Option<&Path>) -> Result<Self, PlaceError> {
        let is_users = folder.is_none();
        let folder = match folder {
            Some(folder) => checked(folder)?,
            None => directory::users()?,
        };
        Ok(Place {
            folder,
            is_users,
            process: ProcessId::own(),
        })
    }

    /// The same of this process, a forked child of the one that had `self`.
    pub fn of_child(&self) -> Self {
        Place {
            process: ProcessId::own(),
            ..self.clone()
        }
    }

    /// The socket's path.
    pub fn path(&self) -> PathBuf {
        let ProcessId { pid, start } = self.process;
        self.folder.join(format!("{pid}-{start}{EXTENSION}"))
    }

    /// What `act` makes of the path, while the folder's lock is held: nobody else makes or removes
    /// a socket there meanwhile. Sockets of programs that are gone are removed before.
    pub fn locked<T>(&self, act: impl Fn(&Path) -> io::Result<T>) -> Result<T, PlaceError> {
        for _ in 1..ATTEMPTS {
            match self.locked_once(&act) {
                Err(PlaceError::Io { error, .. })
                    if self.is_users && error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        self.locked_once(&act)
    }

    fn locked_once<T>(&self, act: impl Fn(&Path) -> io::Result<T>) -> Result<T, PlaceError> {
        if self.is_users {
            directory::make_private(&self.folder)?;
        }
        let failed = |error| PlaceError::Io {
            folder: self.folder.clone(),
            error,
        };
        let lock = directory::lock_of(&self.folder, PATIENCE).map_err(failed)?;
        let _lock = lock.ok_or_else(|| PlaceError::Locked(self.folder.clone()))?;
        remove_those(&self.folder, |process| !process.is_alive());
        let path = self.path();
        // It is this process's number and start: the program before an exec has left it.
        let _ = fs::remove_file(&path);
        act(&path).map_err(failed)
    }
}

fn checked(folder: &Path) -> Result<PathBuf, PlaceError> {
    let Ok(found) = fs::metadata(folder) else {
        return Err(PlaceError::Missing(folder.into()));
    };
    if !found.is_dir() || !folder.is_absolute() {
        return Err(PlaceError::Missing(folder.into()));
    }
    let mode = found.mode();
    if mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
        return Err(PlaceError::NotSafe(folder.into()));
    }
    Ok(folder.into())
}

/// Whose socket has this name.
pub fn owner(path: &Path) -> Option<ProcessId> {
    let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?;
    let (pid, start) = name.split_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(pid) || !is_number(start) {
        return None;
    }
    Some(ProcessId {
        pid: pid.parse().ok()?,
        start: start.parse().ok()?,
    })
}

/// The sockets in `folder`, with their owners.
pub fn sockets(folder: &Path) -> impl Iterator<Item = (PathBuf, ProcessId)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let is_socket = entry.file_type().is_ok_and(|it| it.is_socket());
        let path = entry.path();
        let process = owner(&path).filter(|_| is_socket)?;
        Some((path, process))
    })
}

/// Removes sockets in the user's `folder` that nobody listens at.
pub fn remove_stale(folder: &Path) {
    if let Ok(Some(_lock)) = directory::lock_of(folder, PATIENCE) {
        remove_those(folder, |_| true);
    }
}

/// With the lock, nobody is between the making of a socket and listening: refused is dead.
fn remove_those(folder: &Path, are_suspect: impl Fn(ProcessId) -> bool) {
    for (path, process) in sockets(folder) {
        let refused = || {
            let error = connect_to(&path).err();
            error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        };
        if are_suspect(process) && refused() {
            let _ = fs::remove_file(path);
        }
    }
}

/// Connects without waiting: a program that is stopped doesn't take connections in.
pub fn connect_to(path: &Path) -> io::Result<UnixStream> {
    with_short(path, |short| {
        let address = UnixAddr::new(short)?;
        let descriptor = socket(AddressFamily::Unix, SockType::Stream, flags(), None)?;
        make_nonblocking(&descriptor)?;
        loop {
            match connect(descriptor.as_raw_fd(), &address) {
                Err(Errno::EINTR) => {}
                result => break result?,
            }
        }
        Ok(UnixStream::from(descriptor))
    })
}

#[cfg(target_os = "linux")]
fn flags() -> SockFlag {
    SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK
}

/// Elsewhere these are set afterwards.
#[cfg(not(target_os = "linux"))]
fn flags() -> SockFlag {
    SockFlag::empty()
}

#[cfg(target_os = "linux")]
fn make_nonblocking(_: &OwnedFd) -> io::Result<()> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn make_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
    fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    fcntl(descriptor, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(())
}

/// What `act` makes of the path, which is handed over as one that fits a socket's address: of 107
/// bytes at most.
pub fn with_short<T>(path: &Path, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    if UnixAddr::new(path).is_ok() {
        return act(path);
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if !cfg!(target_os = "linux") {
        let message = "its path is too long for a socket; choose a shorter one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let folder = File::open(folder)?;
    let number = folder.as_raw_fd();
    act(&Path::new(&format!("/proc/self/fd/{number}")).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn names_tell_whose_they_are() {
        let of = |name: &str| owner(Path::new(name)).map(|it| (it.pid, it.start));
        assert_eq!(of("/tmp/12-345.sock"), Some((12, 345)));
        for name in [
            "12-345",
            "12.sock",
            "-1-2.sock",
            "+1-2.sock",
            "12-x.sock",
            "12-3-4.sock",
            ".sock",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn dead_sockets_are_removed_and_others_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        drop(UnixListener::bind(at("1-1.sock")).expect("bound"));
        let alive = UnixListener::bind(at("1-2.sock")).expect("bound");
        fs::write(at("1-3.sock"), "").expect("a file");
        drop(UnixListener::bind(at("other.sock")).expect("bound"));
        remove_stale(folder.path());
        let there =
            ["1-1.sock", "1-2.sock", "1-3.sock", "other.sock"].map(|name| at(name).exists());
        assert_eq!(there, [false, true, true, true]);
        drop(alive);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_long_path_works_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = folder.path().join("x".repeat(100)).join("y".repeat(100));
        fs::create_dir_all(&long).expect("folders");
        let place = Place::own(Some(&long)).expect("a folder");
        let listener = place.locked(|path| with_short(path, |short| UnixListener::bind(short)));
        let listener = listener.expect("bound");
        assert!(place.path().exists());
        connect_to(&place.path()).expect("somebody listens");
        drop(listener);
        let error = connect_to(&place.path()).expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn only_folders_that_others_cannot_change_are_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let set = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
        for (mode, is_safe) in [
            (0o755, true),
            (0o777, false),
            (0o775, false),
            (0o1777, true),
        ] {
            set(mode).expect("set");
            assert_eq!(Place::own(Some(folder.path())).is_ok(), is_safe, "{mode:o}");
        }
        for missing in ["/no/such/folder", "relative", "/dev/null"] {
            let error = Place::own(Some(Path::new(missing))).expect_err("refused");
            assert!(error.to_string().contains("no folder that exists"));
        }
    }
}

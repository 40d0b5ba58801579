//! Where ports are: the directory, and the name of a program's socket in it. Used by the port and by
//! `find`; any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "in directories in which nobody else can exchange a file: `checked`"
)]

use crate::directory::{self, DirectoryError};
use crate::output::system_words;
use crate::process_id::ProcessId;
use crate::trusted_path::trusted;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// What the name of a socket ends with.
const EXTENSION: &str = ".sock";

/// What the name of the file with the token ends with. The file exists only if rperf made the
/// token, because nobody knows it then.
const TOKEN: &str = "token";

/// What comes behind it until somebody listens.
const UNFINISHED: &str = ".new";

/// How many sockets a program looks at, to remove those of dead ones, as it makes its own: it is not
/// to take long. A program that forks again and again still removes more than it leaves.
const LOOKED_AT: usize = 4;

/// And at its end, where nobody may come after it.
const LOOKED_AT_LAST: usize = 64;

/// Others may remove the empty user's directory meanwhile.
const ATTEMPTS: usize = 10;

/// Only its user.
const PRIVATE: u32 = 0o600;

/// Why a port can't be at a place.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The user's directory can't be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Another directory was asked for, which isn't there.
    #[error("{} is no directory that exists", .0.display())]
    Missing(PathBuf),
    /// Another directory was asked for, where others could put something in the socket's place.
    #[error("others may change what is in {}; choose a directory of yours that only you can write to", .0.display())]
    NotSafe(PathBuf),
    /// The system refuses.
    #[error("can't listen in {} ({})", directory.display(), system_words(error))]
    Io {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

/// The place of a program's port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    directory: PathBuf,
    /// Whether the directory is the user's: it is removed with the last thing in it.
    is_users: bool,
    process: ProcessId,
}

/// A file with a token. While this lives, nobody takes it for one that a dead process has left:
/// those who have no socket beside it keep this.
#[derive(Debug)]
pub struct TokenFile {
    _lock: Option<Flock<File>>,
}

impl Place {
    /// The place of this program's port: in the user's directory, or in `directory`, which is absolute.
    pub fn own(directory: Option<&Path>) -> Result<Self, PlaceError> {
        let is_users = directory.is_none();
        let directory = match directory {
            Some(directory) => checked(directory)?,
            None => directory::users()?,
        };
        Ok(Place {
            directory,
            is_users,
            process: ProcessId::own(),
        })
    }

    /// The place of this process, a forked child of the one that had `self`.
    pub fn of_child(&self) -> Self {
        Place {
            process: ProcessId::own(),
            ..self.clone()
        }
    }

    /// The socket's path.
    pub fn path(&self) -> PathBuf {
        let ProcessId { pid, start } = self.process;
        self.directory.join(format!("{pid}-{start}{EXTENSION}"))
    }

    /// Where the token is that those need who ask over TCP.
    pub fn token_path(&self) -> PathBuf {
        self.path().with_extension(TOKEN)
    }

    /// Writes the token that those need who ask over TCP, for the user alone.
    pub fn tell(&self, token: &str) -> Result<TokenFile, PlaceError> {
        let path = self.token_path();
        // One that the program before an exec has left.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(PRIVATE)
            .open(&path);
        let written = file.and_then(|mut file| {
            file.write_all(token.as_bytes())?;
            // Some file systems know no locks.
            let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok();
            Ok(TokenFile { _lock: lock })
        });
        written.map_err(|error| PlaceError::Io {
            directory: self.directory.clone(),
            error,
        })
    }

    /// Removes the socket. The directory goes, too, if it is the user's and nothing else is in it but sockets of dead
    /// programs.
    pub fn clear(&self) {
        remove(&self.path());
        if self.is_users && fs::remove_dir(&self.directory).is_err() {
            // Children that have become other programs, or were killed, have left theirs.
            self.remove_some_dead(LOOKED_AT_LAST);
            let _ = fs::remove_dir(&self.directory);
        }
    }

    /// What `make` makes of another path, which then becomes the socket's: `make` listens there. So
    /// if a connection to a socket is refused, its program is gone. Nobody needs a lock, which a
    /// forked child could inherit and keep.
    pub fn made<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> Result<T, PlaceError> {
        for _ in 1..ATTEMPTS {
            match self.made_once(&make) {
                Err(PlaceError::Io { error, .. })
                    if self.is_users && error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        self.made_once(&make)
    }

    fn made_once<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> Result<T, PlaceError> {
        if self.is_users {
            directory::make_private(&self.directory)?;
        }
        self.remove_some_dead(LOOKED_AT);
        let path = self.path();
        let unfinished = path.with_extension(format!("sock{UNFINISHED}"));
        let _ = fs::remove_file(&unfinished);
        let made = make(&unfinished).and_then(|made| {
            // In place of one that the program before an exec has left.
            fs::rename(&unfinished, &path)?;
            Ok(made)
        });
        made.map_err(|error| {
            let _ = fs::remove_file(&unfinished);
            let directory = self.directory.clone();
            PlaceError::Io { directory, error }
        })
    }

    /// Others in each process, so that all get their turn.
    fn remove_some_dead(&self, most: usize) {
        let there: Vec<_> = sockets(&self.directory).collect();
        let first = self.process.pid as usize % there.len().max(1);
        let some = there.iter().cycle().skip(first);
        for (path, process) in some.take(there.len().min(most)) {
            remove_if_dead(path, *process);
        }
    }
}

/// Where the directory is, without links, if it is there and nobody can put something else in the
/// place of what is made in it.
pub fn checked(directory: &Path) -> Result<PathBuf, PlaceError> {
    let Ok(found) = fs::metadata(directory) else {
        return Err(PlaceError::Missing(directory.into()));
    };
    if !found.is_dir() || !directory.is_absolute() {
        return Err(PlaceError::Missing(directory.into()));
    }
    trusted(directory).map_err(PlaceError::NotSafe)
}

/// Whose socket has this name.
pub fn owner(path: &Path) -> Option<ProcessId> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(UNFINISHED).unwrap_or(name);
    let name = name.strip_suffix(EXTENSION)?;
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

/// What `path` is called once somebody listens.
pub fn finished(path: PathBuf) -> PathBuf {
    let name = path.to_str().and_then(|name| name.strip_suffix(UNFINISHED));
    name.map_or_else(|| path.clone(), PathBuf::from)
}

/// The sockets in `directory`, with their owners.
pub fn sockets(directory: &Path) -> impl Iterator<Item = (PathBuf, ProcessId)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let is_socket = entry.file_type().is_ok_and(|it| it.is_socket());
        let path = entry.path();
        let process = owner(&path).filter(|_| is_socket)?;
        Some((path, process))
    })
}

/// Removes what dead programs have left in the user's `directory`.
pub fn remove_dead(directory: &Path) {
    for (path, process) in sockets(directory) {
        remove_if_dead(&path, process);
    }
    remove_dead_tokens(directory);
}

/// The tokens of dead programs without a socket, such as `rperf serve`, are removed.
fn remove_dead_tokens(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    for path in paths.filter(|path| path.extension().is_some_and(|it| it == TOKEN)) {
        let socket = path.with_extension(&EXTENSION[1..]);
        let is_dead = owner(&socket).is_some_and(|process| !process.is_alive());
        if is_dead && !socket.exists() && !is_kept(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

/// A process of another PID namespace may keep it.
fn is_kept(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    matches!(lock, Err((_, Errno::EWOULDBLOCK)))
}

/// A process of another PID namespace isn't known here, but it listens. One that is known may be
/// about to make its socket anew, after an exec.
fn remove_if_dead(path: &Path, process: ProcessId) {
    let refused = || {
        let error = connect_to(path).err();
        error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if !process.is_alive() && refused() {
        remove(path);
    }
}

/// The socket, and what there is with it.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(path.with_extension(TOKEN));
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
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    if !cfg!(target_os = "linux") {
        let message = "its path is too long for a socket; choose a shorter one";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let directory = File::open(directory)?;
    let number = directory.as_raw_fd();
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
        assert_eq!(of("/tmp/12-345.sock.new"), Some((12, 345)));
        for name in [
            "12-345",
            "12.sock",
            "-1-2.sock",
            "+1-2.sock",
            "12-x.sock",
            "12-3-4.sock",
            "12-3.new",
            ".sock",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn dead_sockets_are_removed_and_others_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        drop(UnixListener::bind(at("1-1.sock")).expect("bound"));
        let alive = UnixListener::bind(at("1-2.sock")).expect("bound");
        for name in ["1-3.sock", "1-1.token", "1-2.token", "1-4.token"] {
            fs::write(at(name), "").expect("a file");
        }
        let elsewhere = Place {
            directory: directory.path().into(),
            is_users: false,
            process: ProcessId { pid: 1, start: 5 },
        };
        let kept = elsewhere.tell("token").expect("written");
        drop(UnixListener::bind(at("other.sock")).expect("bound"));
        remove_dead(directory.path());
        let there =
            ["1-1.sock", "1-2.sock", "1-3.sock", "other.sock"].map(|name| at(name).exists());
        assert_eq!(there, [false, true, true, true]);
        let told = || [1, 2, 4, 5].map(|number| at(&format!("1-{number}.token")).exists());
        assert_eq!(told(), [false, true, false, true]);
        drop(kept);
        remove_dead(directory.path());
        assert_eq!(told(), [false, true, false, false]);
        drop(alive);
    }

    #[test]
    fn those_that_make_their_own_remove_more_than_they_leave() {
        let directory = tempfile::tempdir().expect("a directory");
        let count = || sockets(directory.path()).count();
        for number in 0..40 {
            let path = directory
                .path()
                .join(format!("{}-1.sock", i32::MAX - number));
            drop(UnixListener::bind(path).expect("bound"));
        }
        let place = Place::own(Some(directory.path())).expect("a directory");
        for _ in 0..40 {
            let listener = place.made(|path| UnixListener::bind(path)).expect("bound");
            connect_to(&place.path()).expect("somebody listens");
            drop(listener);
        }
        assert_eq!(count(), 1);
        place.clear();
        assert_eq!(count(), 0);
    }

    #[test]
    fn the_last_one_takes_those_of_dead_children_away() {
        let base = tempfile::tempdir().expect("a directory");
        let place = Place {
            directory: base.path().join("users"),
            is_users: true,
            process: ProcessId::own(),
        };
        let at = |name: &str| place.directory.join(name);
        let listener = place.made(|path| UnixListener::bind(path)).expect("bound");
        for number in 0..10 {
            let name = format!("{}-1.sock", i32::MAX - number);
            drop(UnixListener::bind(at(&name)).expect("bound"));
        }
        let alive = UnixListener::bind(at("1-2.sock")).expect("bound");
        place.clear();
        let left: Vec<_> = sockets(&place.directory).collect();
        assert_eq!(left.len(), 1, "one listens, whatever its number: {left:?}");
        drop((listener, alive));
        place.clear();
        assert!(!place.directory.exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_long_path_works_too() {
        let directory = tempfile::tempdir().expect("a directory");
        let long = directory.path().join("x".repeat(100)).join("y".repeat(100));
        fs::create_dir_all(&long).expect("directories");
        let place = Place::own(Some(&long)).expect("a directory");
        let listener = place.made(|path| with_short(path, |short| UnixListener::bind(short)));
        let listener = listener.expect("bound");
        assert!(place.path().exists());
        connect_to(&place.path()).expect("somebody listens");
        drop(listener);
        let error = connect_to(&place.path()).expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn only_directories_that_others_cannot_change_are_taken() {
        let directory = tempfile::tempdir().expect("a directory");
        let set = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode));
        for (mode, is_safe) in [
            (0o755, true),
            (0o777, false),
            (0o775, false),
            (0o1777, true),
        ] {
            set(mode).expect("set");
            assert_eq!(
                Place::own(Some(directory.path())).is_ok(),
                is_safe,
                "{mode:o}"
            );
        }
        set(0o755).expect("set");
        // Only root can give it away.
        if std::os::unix::fs::chown(directory.path(), Some(65_534), None).is_ok() {
            let error = Place::own(Some(directory.path())).expect_err("another user's");
            assert!(error.to_string().contains("others may change"), "{error}");
        }
        for missing in ["/no/such/directory", "relative", "/dev/null"] {
            let error = Place::own(Some(Path::new(missing))).expect_err("refused");
            assert!(error.to_string().contains("no directory that exists"));
        }
    }
}

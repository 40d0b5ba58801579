//! The directory in which the processes of a session leave their profiles: private, and gone when the
//! session ends. The names of all files in it are here. Used by the command, and through the
//! extension for sessions that a program starts. Any thread.
//!
//! It is in a directory of the user's, which is in XDG_RUNTIME_DIR or else in a
//! temporary directory, where others could make things under our names. So what is
//! there already is used only if nobody else can have a hand in it; if the name itself is another
//! user's, the user's directory has a name that nobody can know before.
//!
//! Who has made a session holds a lock on a file in its directory: process numbers alone
//! say nothing of processes of other PID namespaces, such as containers that share
//! the temporary directory.

#![expect(
    clippy::disallowed_methods,
    reason = "in a directory of the user's alone, which it has checked"
)]

use crate::process_id::ProcessId;
use crate::trusted_path::{Rule, owned, trusted};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, Flock, FlockArg};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, Uid, faccessat};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

const PRIVATE: u32 = 0o700;
/// Others may remove the empty user's directory while a session is being made in it.
const ATTEMPTS: usize = 10;
/// Bytes that have to be free where a session's directory is made: the profiles of its processes come there.
const ROOM: u128 = 1 << 20;
/// Name of the locked file in a session's directory.
const LOCK: &str = "lock";
/// Name of the file with the session's settings, which each process reads.
pub const SETTINGS: &str = "settings";
/// Name of the file to which each process adds lines about its profile.
pub const STATUS: &str = "status";

/// Why there is no directory for a session.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// The directory of the user can't be made, or used.
    #[error("can't make the directory {} ({error}); set TMPDIR to one that works", users.display())]
    Io {
        /// The user's directory.
        users: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// TMPDIR names no directory, or there is no /tmp.
    #[error("there is no directory {}: make it, or set TMPDIR to another one", .0.display())]
    NoTemporary(PathBuf),
    /// There is none in which the user's could be.
    #[error(
        "XDG_RUNTIME_DIR, TMPDIR, /tmp and /var/tmp are other users' or can't be written to; set TMPDIR \
         to a directory of yours"
    )]
    NoBase,
    /// Others could have a hand in it.
    #[error(
        "{} must be a directory of yours with mode 700; remove it, or set TMPDIR to another directory",
        .0.display()
    )]
    NotPrivate(PathBuf),
    /// Another user has its name, and it can't have another one.
    #[error(
        "{} belongs to user {owner}, and there can't be another one beside it ({error}); set TMPDIR to \
         another directory",
        users.display()
    )]
    Taken {
        /// Where the user's directory would be.
        users: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Why there is no other.
        error: io::Error,
    },
}

/// The path of the profile that a process has left, which began to be profiled then.
pub fn profile_path(directory: &Path, pid: i32, begun_ns: u64) -> PathBuf {
    directory.join(format!("{pid}-{begun_ns}.pb.gz"))
}

/// What the name of a member's sign ends with that it has said why there is no profile of it.
const FAILED: &str = ".failed";

/// The path of such a sign.
pub fn failure_path(directory: &Path, pid: i32, begun_ns: u64) -> PathBuf {
    directory.join(format!("{pid}-{begun_ns}{FAILED}"))
}

/// The names of the members that have left such signs, without their ends.
pub fn failures(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| Some(name.strip_suffix(FAILED)?.to_string()))
        .collect()
}

/// The locks of this process's sessions.
static LOCKS: Mutex<Vec<(PathBuf, Flock<File>)>> = Mutex::new(Vec::new());

/// Makes a new one, and removes those of sessions whose process is gone.
pub fn create() -> Result<PathBuf, DirectoryError> {
    create_in(&base_of_sessions()?)
}

/// Removes a session's directory. What can't be removed is left to the next session.
pub fn remove(directory: &Path) {
    // A process that is late may add to it meanwhile.
    for _ in 0..ATTEMPTS {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {}
            _ => break,
        }
    }
    // Stays if another session has a directory in it.
    let _ = directory.parent().map(fs::remove_dir);
    if let Ok(mut locks) = LOCKS.lock() {
        locks.retain(|(locked, _)| locked != directory);
    }
}

/// Where ports are: the first of XDG_RUNTIME_DIR, the temporary directory, `/tmp` and `/var/tmp` that no other
/// user owns, nor one above it: others may have set the variables, as with `su` or in a service. Temporary
/// directories in which others can exchange what is ours come last: some containers have no others. One that
/// isn't there is an error, which its user can mend. Other containers look for ports in XDG_RUNTIME_DIR only,
/// which may be a volume that all can write to.
fn base() -> Result<PathBuf, DirectoryError> {
    match runtime().and_then(|path| usable(&path, owned)) {
        Some(runtime) => Ok(runtime),
        None => temporary_base(None),
    }
}

/// Where sessions are: as for ports, but XDG_RUNTIME_DIR comes last, too, if others can exchange what is in
/// it. What is there says what the processes of a session load. A file system that is full is passed over, if
/// another place is safe.
fn base_of_sessions() -> Result<PathBuf, DirectoryError> {
    let runtime = runtime();
    let base = match runtime.as_ref().and_then(|path| usable(path, trusted)) {
        Some(safe) => safe,
        None => temporary_base(runtime.and_then(|path| usable(&path, owned)))?,
    };
    if has_room(&base) {
        return Ok(base);
    }
    let places = places();
    let mut with_room = places.iter().filter(|place| has_room(place));
    let safe = with_room.find_map(|place| usable(place, trusted));
    // Where all are full, the one that would be taken anyway has the error.
    Ok(safe.unwrap_or(base))
}

/// Whether the file system has some room, as far as it says.
fn has_room(place: &Path) -> bool {
    statvfs(place).map_or(true, |system| {
        // Systems have them in 32 or in 64 bits.
        let free = u128::from(system.blocks_available()) * u128::from(system.fragment_size());
        // Some that are made as they are asked for have no number of blocks.
        system.blocks() == 0 || free >= ROOM
    })
}

fn runtime() -> Option<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|path| path.is_absolute())
}

/// A temporary directory, or `other` if others can exchange what is in all that are there. With `other`, a TMPDIR
/// that names nothing is no error: it doesn't make that one the better place.
fn temporary_base(other: Option<PathBuf>) -> Result<PathBuf, DirectoryError> {
    let temporary = temporary();
    if other.is_none() && !temporary.is_dir() {
        return Err(DirectoryError::NoTemporary(temporary));
    }
    let places = places();
    let first = |rule: Rule| places.iter().find_map(|place| usable(place, rule));
    first(trusted)
        .or(other)
        .or_else(|| first(owned))
        .ok_or(DirectoryError::NoBase)
}

/// The temporary directories, the best first.
fn places() -> [PathBuf; 3] {
    [temporary(), "/tmp".into(), "/var/tmp".into()]
}

fn usable(place: &Path, rule: Rule) -> Option<PathBuf> {
    let place = rule(place).ok()?;
    // With the effective rights, as when something is made there.
    let is_writable = faccessat(AT_FDCWD, &place, AccessFlags::W_OK, AtFlags::AT_EACCESS).is_ok();
    is_writable.then_some(place)
}

/// TMPDIR if it is an absolute path, else /tmp. A relative one would change with the current
/// directory.
pub fn temporary() -> PathBuf {
    temporary_from(std::env::var_os("TMPDIR"))
}

fn temporary_from(value: Option<OsString>) -> PathBuf {
    value
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| "/tmp".into())
}

/// The user's directory, which is made if it isn't there. It is private.
pub fn users() -> Result<PathBuf, DirectoryError> {
    private_in(&base()?)
}

fn private_in(base: &Path) -> Result<PathBuf, DirectoryError> {
    let users = users_in(base);
    let Err(error) = make_private(&users) else {
        return Ok(users);
    };
    let Some(owner) = owner_of_taken(&users) else {
        return Err(error);
    };
    if let Some(other) = other_in(base) {
        return Ok(other);
    }
    let made = tempfile::Builder::new()
        .prefix(&other_prefix())
        .permissions(Permissions::from_mode(PRIVATE))
        .tempdir_in(base);
    let made = made.map_err(|error| DirectoryError::Taken {
        users,
        owner,
        error,
    });
    Ok(made?.keep())
}

/// Whose the name of the user's directory is, if it is another user's.
fn owner_of_taken(users: &Path) -> Option<u32> {
    let owner = fs::symlink_metadata(users).ok()?.uid();
    (owner != Uid::effective().as_raw()).then_some(owner)
}

/// The user's directory where its usual name is another user's. Only this user, or root, can have
/// made it.
fn other_in(base: &Path) -> Option<PathBuf> {
    let prefix = other_prefix();
    let entries = fs::read_dir(base).ok()?.flatten();
    let ours = entries.filter(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes())
    });
    ours.map(|entry| entry.path())
        .filter(|path| is_private(path))
        .min()
}

fn other_prefix() -> String {
    format!("rperf-{}-", Uid::effective())
}

/// Makes the user's directory `users`, if it isn't there, and sees to it that it is private.
pub fn make_private(users: &Path) -> Result<(), DirectoryError> {
    make(users).map_err(|error| DirectoryError::Io {
        users: users.into(),
        error,
    })?;
    match is_private(users) {
        true => Ok(()),
        false => Err(DirectoryError::NotPrivate(users.into())),
    }
}

/// The user's directory, if it is there and private.
pub fn existing_users() -> Option<PathBuf> {
    let base = base().ok()?;
    let users = users_in(&base);
    match is_private(&users) {
        true => Some(users),
        false => owner_of_taken(&users).and_then(|_| other_in(&base)),
    }
}

fn users_in(base: &Path) -> PathBuf {
    base.join(format!("rperf-{}", Uid::effective()))
}

fn create_in(base: &Path) -> Result<PathBuf, DirectoryError> {
    let cannot = |error| DirectoryError::Io {
        users: users_in(base),
        error,
    };
    for _ in 0..ATTEMPTS {
        let users = private_in(base)?;
        // Nobody may look at a directory that isn't locked yet.
        let guard = File::open(&users).map(|users| Flock::lock(users, FlockArg::LockExclusive));
        remove_stale(&users);
        let made = make_session(&users);
        drop(guard);
        match made {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result.map_err(cannot),
        }
    }
    Err(cannot(io::ErrorKind::NotFound.into()))
}

/// Makes the directory, unless something is there.
fn make(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(PRIVATE).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn is_private(directory: &Path) -> bool {
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == Uid::effective().as_raw()
            && found.mode() & 0o777 == PRIVATE
    })
}

/// The name says whose it is: `PID-START-NUMBER`.
fn make_session(users: &Path) -> io::Result<PathBuf> {
    let ProcessId { pid, start } = ProcessId::own();
    let mut number = 0;
    loop {
        let directory = users.join(format!("{pid}-{start}-{number}"));
        match DirBuilder::new().mode(PRIVATE).create(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            result => {
                result?;
                return match lock(&directory) {
                    Ok(()) => Ok(directory),
                    Err(error) => {
                        remove(&directory);
                        Err(error)
                    }
                };
            }
        }
    }
}

/// Without an effect on file systems that know no locks.
fn lock(directory: &Path) -> io::Result<()> {
    let file = File::create(directory.join(LOCK))?;
    if let (Ok(lock), Ok(mut locks)) = (
        Flock::lock(file, FlockArg::LockExclusiveNonblock),
        LOCKS.lock(),
    ) {
        locks.push((directory.to_path_buf(), lock));
    }
    Ok(())
}

fn is_locked(directory: &Path) -> bool {
    let Ok(file) = File::open(directory.join(LOCK)) else {
        return false;
    };
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock);
    matches!(lock, Err((_, Errno::EWOULDBLOCK)))
}

fn remove_stale(users: &Path) {
    let Ok(entries) = fs::read_dir(users) else {
        return;
    };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner);
        let is_gone = owner.is_some_and(|owner| !owner.is_alive());
        if is_gone && !is_locked(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn owner(name: &str) -> Option<ProcessId> {
    let mut parts = name.split('-');
    let pid = parts.next()?.parse().ok()?;
    let start = parts.next()?.parse().ok()?;
    parts.next()?;
    Some(ProcessId { pid, start })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn users(base: &Path) -> PathBuf {
        base.join(format!("rperf-{}", Uid::effective()))
    }

    #[test]
    fn it_is_private_and_nothing_is_left_of_it() {
        let base = tempfile::tempdir().expect("a directory");
        let one = create_in(base.path()).expect("made");
        let two = create_in(base.path()).expect("made");
        assert_ne!(one, two);
        for directory in [&users(base.path()), &one, &two] {
            assert!(is_private(directory));
        }
        fs::write(one.join("file"), "").expect("a file");
        remove(&one);
        assert!(two.is_dir());
        remove(&two);
        assert_eq!(fs::read_dir(base.path()).expect("a directory").count(), 0);
        remove(&two);
    }

    #[test]
    fn what_others_could_have_a_hand_in_is_refused() {
        let base = tempfile::tempdir().expect("a directory");
        let users = users(base.path());
        let refusal = || {
            create_in(base.path())
                .expect_err("it is refused")
                .to_string()
        };
        fs::create_dir(&users).expect("a directory");
        for mode in [0o755, 0o770, 0o701] {
            fs::set_permissions(&users, Permissions::from_mode(mode)).expect("permissions");
            assert!(refusal().contains("must be a directory of yours with mode 700"));
        }
        fs::remove_dir(&users).expect("removed");
        let elsewhere = tempfile::tempdir().expect("a directory");
        symlink(elsewhere.path(), &users).expect("a link");
        assert!(refusal().contains("must be a directory of yours"));
        fs::remove_file(&users).expect("removed");
        fs::write(&users, "").expect("a file");
        assert!(refusal().contains("must be a directory of yours"));
        let error = create_in(Path::new("/no/such/directory"))
            .expect_err("no base")
            .to_string();
        assert!(error.contains("can't make the directory"));
    }

    #[test]
    fn directories_of_processes_that_are_gone_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let own = create_in(base.path()).expect("made");
        let users = users(base.path());
        let ProcessId { pid, start } = ProcessId::own();
        let stale = [
            format!("{}-5-0", i32::MAX),
            format!("{pid}-{}-0", start + 1),
        ];
        let foreign = ["notes".to_string(), "1-2".to_string()];
        for name in stale.iter().chain(&foreign) {
            fs::create_dir(users.join(name)).expect("a directory");
        }
        create_in(base.path()).expect("made");
        let there = |name: &String| users.join(name).exists();
        assert!(own.is_dir() && foreign.iter().all(there));
        assert!(start == 0 || !stale.iter().any(there));
    }

    #[test]
    fn a_directory_whose_lock_is_held_stays_though_no_such_process_is_known_here() {
        let base = tempfile::tempdir().expect("a directory");
        let own = create_in(base.path()).expect("made");
        let elsewhere = users(base.path()).join(format!("{}-5-0", i32::MAX));
        fs::create_dir(&elsewhere).expect("a directory");
        let file = File::create(elsewhere.join(LOCK)).expect("a file");
        let lock = Flock::lock(file, FlockArg::LockExclusive).expect("locked");
        remove(&create_in(base.path()).expect("made"));
        assert!(elsewhere.is_dir());
        drop(lock);
        assert!(is_locked(&own));
        remove(&create_in(base.path()).expect("made"));
        assert!(!elsewhere.exists());
        remove(&own);
        let locks = LOCKS.lock().expect("locks");
        assert!(locks.iter().all(|(directory, _)| directory != &own));
    }

    #[test]
    fn a_place_that_is_not_absolute_is_none() {
        let of = |value: &str| temporary_from(Some(value.into()));
        assert_eq!(of("/var/tmp"), PathBuf::from("/var/tmp"));
        for value in ["", "tmp", "./tmp"] {
            assert_eq!(of(value), PathBuf::from("/tmp"));
        }
        assert_eq!(temporary_from(None), PathBuf::from("/tmp"));
    }
}

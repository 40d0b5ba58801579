//! Directories that no other user can take away, or put something else in the place of: each one on
//! the way to them, too. Used by `directory` and `place`; any thread.

use nix::unistd::Uid;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Others may write to it.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The bit of a directory's mode with which others can't remove files that aren't theirs.
const STICKY: u32 = 0o1000;
/// Whose a file is whose owner has no number in this user namespace (Linux's `overflowuid`).
const UNKNOWN: u32 = 65_534;

/// Other directories that only root makes. Those directly below `/` all are.
const SYSTEMS: [&str; 6] = [
    "/dev/shm",
    "/run/user",
    "/usr/local",
    "/var/cache",
    "/var/lib",
    "/var/tmp",
];

/// What is asked of a directory: where it is, without links, or which one on the way isn't safe.
pub type Rule = fn(&Path) -> Result<PathBuf, PathBuf>;

/// Where the directory `path` is, without links, if only this user and root can change what is found
/// there. Of one in which all can make files, such as `/tmp`, that holds for those that are there. Else
/// which directory others can change, or `path` if there is none.
pub fn trusted(path: &Path) -> Result<PathBuf, PathBuf> {
    let is_closed = |mode| mode & WRITABLE_BY_OTHERS == 0 || mode & STICKY != 0;
    resolved(path, |directory, found| {
        is_trusted_owner(directory, found.uid()) && is_closed(found.mode())
    })
}

/// Where the directory `path` is, without links, if it and all above it are this user's or root's. Else
/// which one isn't, or `path` if there is none.
pub fn owned(path: &Path) -> Result<PathBuf, PathBuf> {
    resolved(path, |directory, found| {
        is_trusted_owner(directory, found.uid())
    })
}

fn resolved(path: &Path, is_safe: impl Fn(&Path, &Metadata) -> bool) -> Result<PathBuf, PathBuf> {
    let resolved = fs::canonicalize(path).map_err(|_| path.to_path_buf())?;
    if !resolved.is_dir() {
        return Err(path.into());
    }
    let is_safe =
        |directory: &Path| fs::symlink_metadata(directory).is_ok_and(|it| is_safe(directory, &it));
    match resolved.ancestors().find(|directory| !is_safe(directory)) {
        Some(unsafe_one) => Err(unsafe_one.into()),
        None => Ok(resolved),
    }
}

fn is_trusted_owner(directory: &Path, owner: u32) -> bool {
    owner == 0
        || owner == Uid::effective().as_raw()
        || owner == UNKNOWN && is_systems(directory) && !is_user(UNKNOWN)
}

/// Whether only root can have made it. In a rootless container root may have no number; neither may other
/// users outside of it.
fn is_systems(directory: &Path) -> bool {
    let is_below_root = directory.parent().is_none_or(|it| it == Path::new("/"));
    is_below_root || SYSTEMS.iter().any(|it| directory == Path::new(it))
}

/// Whether this number is a user's in this user namespace.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn is_user(number: u32) -> bool {
    let Ok(map) = fs::read_to_string("/proc/self/uid_map") else {
        return true;
    };
    map.lines().any(|range| {
        let mut numbers = range.split_whitespace().map(|it| it.parse::<u64>().ok());
        let (first, length) = (numbers.next().flatten(), numbers.nth(1).flatten());
        let (Some(first), Some(length)) = (first, length) else {
            return true;
        };
        (first..first.saturating_add(length)).contains(&u64::from(number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn what_only_root_can_make_is_the_systems() {
        for (path, is_one) in [
            ("/", true),
            ("/tmp", true),
            ("/var/tmp", true),
            ("/var/lib", true),
            ("/tmp/of_somebody", false),
            ("/var/tmp/of_somebody", false),
        ] {
            assert_eq!(is_systems(Path::new(path)), is_one, "{path}");
        }
    }

    #[test]
    fn a_directory_is_trusted_with_all_above_it() {
        let base = tempfile::tempdir().expect("a directory");
        let inner = base.path().join("outer/inner");
        fs::create_dir_all(&inner).expect("directories");
        let resolved = fs::canonicalize(&inner).expect("it is there");
        assert_eq!(trusted(&inner), Ok(resolved.clone()));
        let outer = inner.parent().expect("the one above");
        for (mode, is_trusted) in [
            (0o770, false),
            (0o777, false),
            (0o1777, true),
            (0o755, true),
        ] {
            fs::set_permissions(outer, Permissions::from_mode(mode)).expect("permissions");
            assert_eq!(trusted(&inner).is_ok(), is_trusted, "{mode:o}");
        }
        let link = base.path().join("link");
        symlink(&inner, &link).expect("a link");
        assert_eq!(trusted(&link), Ok(resolved));
        let none = base.path().join("none");
        assert_eq!(trusted(&none), Err(none.clone()));
        if Uid::effective().is_root() && chown(outer, Some(12_345), None).is_ok() {
            let changeable = fs::canonicalize(outer).expect("it is there");
            assert_eq!(
                trusted(&inner),
                Err(changeable),
                "its owner could exchange what is in it"
            );
        }
    }
}

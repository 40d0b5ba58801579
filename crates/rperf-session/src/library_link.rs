//! A path without a blank to a library whose own has one: RUBYOPT is split at blanks, and what a program
//! does with RUBYLIB is its own affair. It is a link, which stays, because a child may outlive the session.
//! Its directory is the user's own, below which nobody else can put anything: a link in `/tmp` could be
//! removed by time, and replaced by others while environments still name it. Any thread.

use crate::trusted_path::trusted;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Name of the directory in the user's cache.
const DIRECTORY: &str = "rperf";
/// Others may write to it.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The path of a link to `library`, which is made if it isn't there. None if there can't be one, or its path
/// would have a blank, too.
pub fn to(library: &Path) -> Option<PathBuf> {
    let set = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    within(&cache, library)
}

/// A link in this user's directory in `cache`. One that is there is taken if it leads to `library`.
fn within(cache: &Path, library: &Path) -> Option<PathBuf> {
    let has_blank = |path: &Path| path.as_os_str().as_bytes().iter().any(is_blank);
    let directory = Some(cache)
        .filter(|it| !has_blank(it))
        .and_then(private_in)?;
    let name = format!("lib-{:016x}", hash(library.as_os_str()));
    let link = Some(directory.join(name)).filter(|it| !has_blank(it))?;
    match symlink(library, &link) {
        Ok(()) => Some(link),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_it = fs::read_link(&link).is_ok_and(|target| target == library);
            is_it.then_some(link)
        }
        Err(_) => None,
    }
}

/// The directory, which is made if it isn't there; none if others could have a hand in it.
fn private_in(cache: &Path) -> Option<PathBuf> {
    // Nothing is made where another user says.
    let is_there = |path: &&Path| fs::symlink_metadata(path).is_ok();
    trusted(cache.ancestors().find(is_there)?).ok()?;
    let made = DirBuilder::new().recursive(true).mode(0o700).create(cache);
    made.ok()?;
    let directory = trusted(cache).ok()?.join(DIRECTORY);
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
        _ => {}
    }
    let found = fs::symlink_metadata(&directory).ok()?;
    let user = nix::unistd::Uid::effective().as_raw();
    let is_own = found.is_dir() && found.uid() == user && found.mode() & WRITABLE_BY_OTHERS == 0;
    is_own.then_some(directory)
}

/// What Ruby splits RUBYOPT at: as C's isspace has it.
pub fn is_blank(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

/// A number for a path, the same one in each version of rperf (FNV-1a).
fn hash(path: &OsStr) -> u64 {
    path.as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_link_leads_to_a_library() {
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("my: gems");
        fs::create_dir(&library).expect("made");
        let cache = place.path().join("cache/of/mine");
        let link = within(&cache, &library).expect("made");
        assert_eq!(
            fs::canonicalize(&link).ok(),
            fs::canonicalize(&library).ok()
        );
        assert_eq!(within(&cache, &library), Some(link.clone()));
        let other = within(&cache, &place.path().join("other gems"));
        assert_ne!(other.expect("made"), link);
        assert_eq!(within(&place.path().join("my cache"), &library), None);
    }

    #[test]
    fn nobody_else_can_have_a_hand_in_it() {
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("my gems");
        let link = within(place.path(), &library).expect("made");
        fs::remove_file(&link).expect("removed");
        symlink("/", &link).expect("made");
        assert_eq!(within(place.path(), &library), None, "it leads elsewhere");
        fs::remove_file(&link).expect("removed");
        let directory = place.path().join(DIRECTORY);
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).expect("permissions");
        assert_eq!(within(place.path(), &library), None, "others may write");
        fs::remove_dir(&directory).expect("removed");
        symlink("/tmp", &directory).expect("made");
        assert_eq!(within(place.path(), &library), None, "it is a link");
        let others = place.path().join("others");
        fs::create_dir(&others).expect("made");
        fs::set_permissions(&others, Permissions::from_mode(0o777)).expect("permissions");
        assert_eq!(within(&others.join("cache"), &library), None);
        assert!(!others.join("cache").exists(), "nothing is made there");
    }
}

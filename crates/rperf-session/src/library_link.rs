//! A path without a blank to a library whose own has one: RUBYOPT is split at blanks, and what a program
//! does with RUBYLIB is its own affair. It is a link in a directory that all users can read, because a
//! child may become another user, and it stays, because a child may outlive the session. Any thread.

use crate::trusted_path::trusted;
use nix::unistd::Uid;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Where links are, the place first in which files are kept for longer.
const PLACES: [&str; 2] = ["/var/tmp", "/tmp"];

/// The path of a link to `library`, which is made if it isn't there. None if there can't be one.
pub fn to(library: &Path) -> Option<PathBuf> {
    PLACES
        .iter()
        .find_map(|place| within(place.as_ref(), library))
}

/// A link in the directory `place`. One that is there is taken only if it is this user's or root's, and
/// leads to `library`.
fn within(place: &Path, library: &Path) -> Option<PathBuf> {
    let place = trusted(place).ok()?;
    remove_dangling(&place);
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    let link = place.join(format!("{}{:016x}", prefix(), hasher.finish()));
    match symlink(library, &link) {
        Ok(()) => Some(link),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_it = is_own(&link) && fs::read_link(&link).is_ok_and(|target| target == library);
            is_it.then_some(link)
        }
        Err(_) => None,
    }
}

fn prefix() -> String {
    format!("rperf-lib-{}-", Uid::effective())
}

fn is_own(link: &Path) -> bool {
    let user = Uid::effective().as_raw();
    fs::symlink_metadata(link).is_ok_and(|found| found.is_symlink() && found.uid() == user)
}

/// Removes this user's links to libraries that are gone.
fn remove_dangling(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for entry in entries.flatten() {
        let is_link = entry.file_name().to_string_lossy().starts_with(&prefix());
        if is_link && is_own(&entry.path()) && !entry.path().exists() {
            // Another process may have been first.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_link_leads_to_a_library_until_that_is_gone() {
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("my: gems");
        fs::create_dir(&library).expect("made");
        let link = within(place.path(), &library).expect("made");
        assert_eq!(
            fs::canonicalize(&link).ok(),
            fs::canonicalize(&library).ok()
        );
        assert_eq!(within(place.path(), &library), Some(link.clone()));
        let other = place.path().join("other gems");
        fs::create_dir(&other).expect("made");
        let other_link = within(place.path(), &other).expect("made");
        assert_ne!(other_link, link);
        fs::remove_dir(&library).expect("removed");
        within(place.path(), &other).expect("it is there");
        assert!(!is_own(&link));
        assert!(is_own(&other_link));
    }

    #[test]
    fn what_somebody_else_has_put_there_is_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let library = place.path().join("my gems");
        let link = within(place.path(), &library).expect("made");
        fs::remove_file(&link).expect("removed");
        symlink("/", &link).expect("made");
        assert_eq!(within(place.path(), &library), None);
        assert_eq!(fs::read_link(&link).expect("a link"), Path::new("/"));
        assert_eq!(within(&place.path().join("none"), &library), None);
    }
}

//! Where a path leads that a file is to be written to, and what others have prepared on the way. Used by
//! `file` and `writable`; any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "it looks at what is there, and opens nothing"
)]

use super::descriptor::Descriptor;
use nix::unistd::Uid;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that are followed; the system's limit.
const MOST_LINKS: usize = 40;

/// The mode's bits of a directory in which everybody can make files, and nobody may remove those of others.
const SHARED: u32 = 0o1002;

/// What is there where a path leads.
pub enum Found {
    /// Nothing that could be seen. What comes meanwhile is replaced.
    Nothing,
    /// An open descriptor.
    Descriptor(Descriptor),
    /// A file, pipe or device, which is no link, as it was when it was looked at.
    There(PathBuf, Metadata),
}

/// What is there where `path` leads, itself or through links. `None` if another user has prepared
/// something on the way. Each step is judged by a single look: only a link is followed that was seen as
/// one, and such a link no other user can exchange.
pub fn found(path: &Path) -> Option<Found> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if let Some(descriptor) = Descriptor::of_path(&path) {
            return Some(Found::Descriptor(descriptor));
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            return Some(Found::Nothing);
        };
        if is_foreign(&path, &metadata) {
            return None;
        }
        if !metadata.is_symlink() {
            return Some(Found::There(path, metadata));
        }
        let Ok(target) = fs::read_link(&path) else {
            return Some(Found::Nothing);
        };
        path = directory_of(&path).join(target);
    }
    Some(Found::Nothing)
}

/// The descriptor that `path` leads to, itself or through links that no other user has prepared.
pub fn descriptor_of(path: &Path) -> Option<Descriptor> {
    match found(path)? {
        Found::Descriptor(descriptor) => Some(descriptor),
        Found::Nothing | Found::There(..) => None,
    }
}

/// Whether another user has made what is `found` at `path`, in a directory where everybody can make
/// some. The rule is Linux's (`fs.protected_regular`, `_fifos` and `_symlinks`), which not all
/// systems have switched on: what the directory's owner has made is trusted.
fn is_foreign(path: &Path, found: &Metadata) -> bool {
    let Ok(directory) = fs::metadata(directory_of(path)) else {
        return false;
    };
    let trusted = [Uid::effective().as_raw(), directory.uid()];
    directory.mode() & SHARED == SHARED && !trusted.contains(&found.uid())
}

/// The directory in which `path` is.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    #[test]
    fn descriptors_are_found_by_their_names_and_through_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let (one, two) = (directory.path().join("one"), directory.path().join("two"));
        symlink("/dev/stderr", &one).expect("a link");
        symlink("one", &two).expect("a link");
        let cases = [
            ("/dev/stdout", Some(1)),
            ("/dev/fd/17", Some(17)),
            ("/proc/self/fd/0", Some(0)),
            (two.to_str().expect("text"), Some(2)),
            ("/dev/fd/-1", None),
            ("/dev/fd/x", None),
            ("/dev/null", None),
            ("/no/such/file", None),
        ];
        for (path, number) in cases {
            let found = descriptor_of(Path::new(path));
            assert_eq!(found.map(Descriptor::number), number, "{path}");
        }
    }

    #[test]
    fn what_another_user_made_where_all_can_make_files_is_foreign() {
        if !Uid::effective().is_root() {
            return;
        }
        let outer = tempfile::tempdir().expect("a directory");
        let at = |name| outer.path().join(name);
        let set_mode = |mode| {
            let permissions = Permissions::from_mode(mode);
            fs::set_permissions(outer.path(), permissions).expect("a mode");
        };
        for name in ["file", "target", "ours"] {
            fs::write(at(name), "").expect("a file");
        }
        symlink(at("target"), at("link")).expect("a link");
        for name in ["file", "link"] {
            lchown(at(name), Some(12345), None).expect("another owner");
        }
        for (mode, is_shared) in [(0o1777, true), (0o755, false), (0o777, false)] {
            set_mode(mode);
            for (name, is_theirs) in [
                ("file", true),
                ("link", true),
                ("target", false),
                ("ours", false),
                ("none", false),
            ] {
                let expected = is_shared && is_theirs;
                assert_eq!(found(&at(name)).is_none(), expected, "{name}, {mode:o}");
            }
        }
        set_mode(0o1777);
        let own = tempfile::tempdir().expect("a directory");
        let to = |name: &str, target: &Path| {
            let link = own.path().join(name);
            symlink(target, &link).expect("a link");
            match found(&link) {
                Some(Found::There(path, _)) => path.to_string_lossy().into_owned(),
                Some(Found::Descriptor(it)) => it.number().to_string(),
                Some(Found::Nothing) => "nothing".into(),
                None => "theirs".into(),
            }
        };
        let ours = at("ours").to_string_lossy().into_owned();
        assert_eq!(to("1", &at("ours")), ours);
        assert_eq!(to("2", &at("none")), "nothing");
        assert_eq!(to("3", &at("file")), "theirs");
        assert_eq!(to("4", &own.path().join("3")), "theirs");
        assert_eq!(to("5", Path::new("1")), ours);
        assert_eq!(to("6", Path::new("/dev/fd/7")), "7");
        assert_eq!(to("7", Path::new("7")), "nothing", "it leads to itself");
        lchown(outer.path(), Some(12345), None).expect("another owner");
        assert!(
            found(&at("file")).is_some(),
            "it is the directory's owner's"
        );
    }
}

//! Where a path leads that a file is to be written to, and what others have prepared on the way. Used by
//! `file` and `writable`; any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "it looks at what is there, and opens nothing"
)]

use super::descriptor::Descriptor;
use nix::unistd::Uid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links that are followed; the system's limit.
const MOST_LINKS: usize = 40;

/// The mode's bits of a directory in which everybody can make files, and nobody may remove those of others.
const SHARED: u32 = 0o1002;

/// Where `path` leads, if it is a link: to a descriptor, or to what is no link. `None` if another user has
/// prepared something on the way.
pub fn followed(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        if Descriptor::of_path(&path).is_some() {
            break;
        }
        if is_foreign(&path) {
            return None;
        }
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = directory_of(&path).join(target);
    }
    Some(path)
}

/// The descriptor that `path` leads to, itself or through links that no other user has prepared.
pub fn descriptor_of(path: &Path) -> Option<Descriptor> {
    Descriptor::of_path(&followed(path)?)
}

/// Whether `path` is a file, pipe or link that another user has made in a directory where everybody can
/// make some. The rule is Linux's (`fs.protected_regular`, `_fifos` and `_symlinks`), which not all
/// systems have switched on: what the directory's owner has made is trusted.
fn is_foreign(path: &Path) -> bool {
    let directory = fs::metadata(directory_of(path));
    let (Ok(found), Ok(directory)) = (fs::symlink_metadata(path), directory) else {
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
                assert_eq!(is_foreign(&at(name)), expected, "{name}, {mode:o}");
            }
        }
        set_mode(0o1777);
        let own = tempfile::tempdir().expect("a directory").keep();
        let to = |name: &str, target: &Path| {
            symlink(target, own.join(name)).expect("a link");
            followed(&own.join(name))
        };
        assert_eq!(to("1", &at("ours")), Some(at("ours")));
        assert_eq!(to("2", &at("none")), Some(at("none")));
        assert_eq!(
            to("3", &at("file")),
            None,
            "a link of ours to a file of theirs"
        );
        assert_eq!(to("4", &own.join("3")), None, "a link to that");
        assert_eq!(to("5", Path::new("1")), Some(at("ours")));
        assert_eq!(to("6", Path::new("/dev/fd/7")), Some("/dev/fd/7".into()));
        fs::remove_dir_all(own).expect("removed");
        lchown(outer.path(), Some(12345), None).expect("another owner");
        assert!(!is_foreign(&at("file")), "it is the directory's owner's");
    }
}

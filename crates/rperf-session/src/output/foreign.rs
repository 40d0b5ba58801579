//! What others have prepared where a file is to be written. Used by `file` and `writable`; any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "it looks at what is there, and opens nothing"
)]

use nix::unistd::Uid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The mode's bits of a directory in which everybody can make files, and nobody may remove those of others.
const SHARED: u32 = 0o1002;

/// Whether `path` is a file, pipe or link that another user has made in a directory where everybody can
/// make some. The rule is Linux's (`fs.protected_regular`, `_fifos` and `_symlinks`), which not all
/// systems have switched on: what the directory's owner has made is trusted.
pub fn is_foreign(path: &Path) -> bool {
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
        lchown(outer.path(), Some(12345), None).expect("another owner");
        assert!(!is_foreign(&at("file")), "it is the directory's owner's");
    }
}

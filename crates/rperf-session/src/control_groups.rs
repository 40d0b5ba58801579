//! The control groups of a process that limit its memory, and their files. On the port's thread, and on the
//! command's.

use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a file at most.
const MOST: u64 = 64 << 10;

/// Where control groups are.
pub const GROUPS: &str = "/sys/fs/cgroup";

/// The directories of the groups that `groups` lists (`/proc/self/cgroup`), as far as they limit memory, and of those
/// above them.
pub fn all_groups(root: &Path, groups: &str) -> Vec<(PathBuf, &'static Names)> {
    let all = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
        let path = path.unwrap_or_default().trim_start_matches('/');
        let (root, names) = match controllers {
            Some("") => (root.to_owned(), &NEW),
            Some(it) if it.split(',').any(|it| it == "memory") => (root.join("memory"), &OLD),
            _ => return Vec::new(),
        };
        let group = root.join(path);
        let all = group.ancestors().take_while(|it| it.starts_with(&root));
        all.map(|it| (it.to_owned(), names)).collect()
    });
    all.collect()
}

/// What the files of a control group are called.
#[derive(Debug)]
pub struct Names {
    /// The most that is allowed.
    pub limit: &'static str,
    /// What is used.
    pub used: &'static str,
    /// The line of `memory.stat` with what can be given back.
    pub cache: &'static str,
}

const NEW: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    cache: "inactive_file ",
};

const OLD: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: "total_inactive_file ",
};

/// The least limit of the groups that `groups` lists, and of those above them; `None` if there is none.
pub fn limit(root: &Path, groups: &str) -> Option<u64> {
    let all = all_groups(root, groups).into_iter();
    let limits =
        all.filter_map(|(group, names)| text(&group.join(names.limit))?.trim().parse().ok());
    // Where there is none, the old ones have the largest number of pages.
    limits.filter(|it| *it < NO_LIMIT).min()
}

/// A limit that is none.
const NO_LIMIT: u64 = 1 << 62;

/// What is in a file of the kernel's.
pub fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = OpenOptions::new()
        .read(true)
        .open(PathBuf::from(path))
        .ok()?;
    file.take(MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let write = |path: &str, limit: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("one")).expect("a directory");
            fs::write(path, limit).expect("a file");
        };
        assert_eq!(limit(root, "0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit(root, "0::/a/b\n"), None);
        write("a/memory.max", "500\n");
        assert_eq!(limit(root, "0::/a/b\n"), Some(500));
        write("a/b/memory.max", "400\n");
        assert_eq!(limit(root, "0::/a/b\n"), Some(400));
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(root, "7:cpu:/a\n4:memory,x:/c\n"), None);
        write("memory/memory.limit_in_bytes", "300\n");
        assert_eq!(limit(root, "7:cpu:/a\n4:memory,x:/c\n"), Some(300));
    }
}

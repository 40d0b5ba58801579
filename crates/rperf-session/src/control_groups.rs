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

/// A limit of memory, which holds for all processes of a group together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bytes that they may have.
    pub bytes: u64,
    /// Bytes that they have, without what can be given back, if that is known.
    pub used_bytes: Option<u64>,
}

/// The least limit of the groups that `groups` lists, and of those above them; `None` if there is none.
pub fn limit(root: &Path, groups: &str) -> Option<Limit> {
    let all = all_groups(root, groups).into_iter();
    let limits =
        all.filter_map(|(group, names)| Some((number(&group, names.limit)?, group, names)));
    // Where there is none, the old ones have the largest number of pages.
    let (bytes, group, names) = limits.filter(|it| it.0 < NO_LIMIT).min_by_key(|it| it.0)?;
    let used = number(&group, names.used);
    let used_bytes = used.map(|it| it.saturating_sub(given_back(&group, names)));
    Some(Limit { bytes, used_bytes })
}

/// The number in a file of a group.
pub fn number(group: &Path, name: &str) -> Option<u64> {
    text(&group.join(name))?.trim().parse().ok()
}

/// Bytes of a group that can be given back.
pub fn given_back(group: &Path, names: &Names) -> u64 {
    let stat = text(&group.join("memory.stat")).unwrap_or_default();
    let cache = stat.lines().find_map(|line| line.strip_prefix(names.cache));
    cache.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
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
        let used = |root: &Path| super::limit(root, "0::/a/b\n").and_then(|it| it.used_bytes);
        let limit = |root: &Path, groups| super::limit(root, groups).map(|it| it.bytes);
        assert_eq!(limit(root, "0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit(root, "0::/a/b\n"), None);
        write("a/memory.max", "500\n");
        assert_eq!(limit(root, "0::/a/b\n"), Some(500));
        write("a/b/memory.max", "400\n");
        assert_eq!(limit(root, "0::/a/b\n"), Some(400));
        assert_eq!(used(root), None);
        write("a/b/memory.current", "350\n");
        assert_eq!(used(root), Some(350));
        write("a/b/memory.stat", "anon 200\ninactive_file 50\n");
        assert_eq!(used(root), Some(300));
        write("memory/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(root, "7:cpu:/a\n4:memory,x:/c\n"), None);
        write("memory/memory.limit_in_bytes", "300\n");
        assert_eq!(limit(root, "7:cpu:/a\n4:memory,x:/c\n"), Some(300));
    }
}

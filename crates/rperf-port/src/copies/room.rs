//! Whether the system has the memory for a copy of this process: pages that either of the two writes are
//! there twice, as long as the copy lives. On the port's thread.

use rperf_session::control_groups::{GROUPS, Names, all_groups, given_back, number, text};
use rperf_session::kernel_text::bytes_in;
use std::path::Path;

/// The part of the process's own memory that has to be free: 1 of so many.
const PART: u64 = 4;

/// What the copy needs for itself at least.
const OWN: u64 = 16 << 20;

/// The file of a control group with 1 if all of its processes are ended together where memory gets short.
const TOGETHER: &str = "memory.oom.group";

/// The lack of memory for a copy.
pub struct Lack {
    /// Bytes that are needed.
    pub needed: u64,
    /// Bytes that are free.
    pub free: u64,
    /// If memory gets short the system ends the program with its copy.
    pub ends_together: bool,
}

/// What is lacking; `None` if there is room, or nothing is known of it.
pub fn lack() -> Option<Lack> {
    let own = bytes_in(
        &text(Path::new("/proc/self/smaps_rollup"))?,
        "Private_Dirty:",
    )?;
    let system = text(Path::new("/proc/meminfo")).and_then(|it| bytes_in(&it, "MemAvailable:"));
    let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let group = of_groups(Path::new(GROUPS), &groups);
    let free = system.into_iter().chain(group).min()?;
    let ends_together = end_together(Path::new(GROUPS), &groups);
    let needed = needed(own, ends_together);
    let lack = Lack {
        needed,
        free,
        ends_together,
    };
    (free < needed).then_some(lack)
}

/// Bytes that have to be free for a copy of a process with so many of its own: all of them where the copy
/// isn't ended alone.
fn needed(own: u64, ends_together: bool) -> u64 {
    let part = if ends_together { 1 } else { PART };
    (own / part).saturating_add(OWN)
}

/// What is free in the control groups that `groups` lists (`/proc/self/cgroup`), and in those above them.
fn of_groups(root: &Path, groups: &str) -> Option<u64> {
    let all = all_groups(root, groups).into_iter();
    all.filter_map(|(group, names)| free(&group, names)).min()
}

/// Whether the system ends all processes of one of these groups together.
fn end_together(root: &Path, groups: &str) -> bool {
    let is_one = |group: &Path| text(&group.join(TOGETHER)).is_some_and(|it| it.trim() == "1");
    all_groups(root, groups).iter().any(|it| is_one(&it.0))
}

/// What is free in a group; `None` without a limit.
fn free(group: &Path, names: &Names) -> Option<u64> {
    let (limit, used) = (number(group, names.limit)?, number(group, names.used)?);
    let left = limit.saturating_sub(used);
    Some(left.saturating_add(given_back(group, names)).min(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_group_counts() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().expect("one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        let free = |groups: &str| of_groups(root.path(), groups);
        assert_eq!(free("0::/a/b\n"), None);
        write("a/memory.max", "1000\n");
        write("a/memory.current", "900\n");
        write("a/memory.stat", "anon 1\ninactive_file 50\n");
        assert_eq!(free("0::/a/b\n"), Some(150));
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "5\n");
        assert_eq!(free("0::/a/b\n"), Some(150));
        write("a/b/memory.max", "100\n");
        assert_eq!(free("0::/a/b\n"), Some(95));
        write("memory/x/memory.limit_in_bytes", "70\n");
        write("memory/x/memory.usage_in_bytes", "30\n");
        assert_eq!(free("3:cpu,memory:/x\n0::/a/b\n"), Some(40));
        assert_eq!(free("3:cpu:/x\nnonsense\n"), None);
    }

    #[test]
    fn a_group_that_is_ended_together_needs_room_for_all() {
        let root = tempfile::tempdir().expect("a directory");
        let group = root.path().join("a/b");
        std::fs::create_dir_all(&group).expect("made");
        let ends = || end_together(root.path(), "0::/a/b\n");
        assert!(!ends());
        std::fs::write(group.join(TOGETHER), "0\n").expect("written");
        assert!(!ends());
        // Without a limit of its own.
        std::fs::write(root.path().join("a").join(TOGETHER), "1\n").expect("written");
        assert!(ends());
        assert_eq!(needed(400 << 20, false), 116 << 20);
        assert_eq!(needed(400 << 20, true), 416 << 20);
    }
}

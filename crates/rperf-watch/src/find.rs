//! Where the ports of this machine's programs are. Used by the command, on its thread.
//!
//! A port is in the user's directory; or where its program was told to put it, or in the program's
//! temporary directory: of those the kernel has a list for each network namespace. A path in another
//! mount namespace, such as a container's, leads there through /proc/PID/root.

#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's files, which nobody can exchange"
)]

use rperf_session::directory;
use rperf_session::place::{finished, owner, remove_dead, sockets};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// A process as /proc shows it.
struct Process {
    pid: i32,
    /// Its number in its own namespace.
    own_pid: i32,
    /// Which namespaces of mounts and of the network it is in, where the system tells.
    mounts: Option<PathBuf>,
    network: Option<PathBuf>,
}

/// The paths of all ports that can be found. Dead ones in the user's directory are removed.
pub fn all() -> Vec<PathBuf> {
    let processes = processes();
    let own = PathBuf::from("/proc/self");
    let mut seen = HashSet::from([fs::read_link(own.join("ns/net")).ok()]);
    let elsewhere = processes
        .iter()
        .filter(|it| seen.insert(it.network.clone()));
    let sources = std::iter::once(own).chain(elsewhere.map(|it| proc(it.pid)));
    let listed = sources.flat_map(|process| listed(&process));
    let reached = listed.flat_map(|path| reachable(&path, &processes));
    without_repetition(in_users_directory().into_iter().chain(reached).collect())
}

/// Whether the process `pid` is the one that the name of the port at `path` tells.
pub fn is_owner(path: &Path, pid: i32) -> bool {
    let own_pid = process(pid).map_or(pid, |it| it.own_pid);
    owner(path).is_some_and(|it| it.pid == own_pid)
}

/// The paths at which the port of the process `pid` may be.
pub fn of(pid: i32) -> Vec<PathBuf> {
    let mut paths = in_users_directory();
    let own = process(pid);
    let numbers = [Some(pid), own.as_ref().map(|it| it.own_pid)];
    let is_its = |path: &PathBuf| owner(path).is_some_and(|it| numbers.contains(&Some(it.pid)));
    paths.extend(listed(Path::new("/proc/self")));
    paths.extend(listed(&proc(pid)));
    paths.retain(is_its);
    let its = Vec::from_iter(own);
    let reached = paths.iter().flat_map(|path| reachable(path, &its));
    without_repetition(reached.collect())
}

fn without_repetition(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    paths
}

/// The paths of the ports in the user's directory. Dead ones in it are removed.
pub fn in_users_directory() -> Vec<PathBuf> {
    let Some(directory) = directory::existing_users() else {
        return Vec::new();
    };
    remove_dead(&directory);
    sockets(&directory).map(|(path, _)| path).collect()
}

fn proc(pid: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// The ports that the kernel lists for a process's network namespace.
fn listed(process: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read(process.join("net/unix")) else {
        return Vec::new();
    };
    let list = String::from_utf8_lossy(&list);
    let paths = list.lines().filter_map(|line| line.split_once(" /"));
    let paths = paths.map(|(_, rest)| PathBuf::from(format!("/{rest}")));
    // A long path is bound through a descriptor, which is another file here.
    let is_usable = |path: &PathBuf| owner(path).is_some() && !path.starts_with("/proc");
    // The kernel has the name under which it was bound.
    paths.filter(is_usable).map(finished).collect()
}

/// A path in the mount namespace of one of `processes`, as it is seen from here.
fn reachable(path: &Path, processes: &[Process]) -> Vec<PathBuf> {
    let is_here = |path: &Path| {
        let found = fs::symlink_metadata(path);
        found.is_ok_and(|found| found.file_type().is_socket())
    };
    if is_here(path) {
        return vec![path.into()];
    }
    let Some(number) = owner(path).map(|it| it.pid) else {
        return Vec::new();
    };
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let candidates = processes
        .iter()
        .filter(|it| it.own_pid == number && it.mounts != own);
    let inside = candidates.filter_map(|it| {
        let root = proc(it.pid).join("root");
        Some(root.join(path.strip_prefix("/").ok()?))
    });
    inside.filter(|path| is_here(path)).collect()
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter_map(process).collect()
}

fn process(pid: i32) -> Option<Process> {
    let directory = proc(pid);
    let status = fs::read_to_string(format!("{}/status", directory.display())).ok()?;
    let fields: HashMap<_, _> = status.lines().filter_map(|it| it.split_once(':')).collect();
    let numbers = fields.get("NSpid").copied().unwrap_or_default();
    let own_pid = numbers.split_whitespace().last();
    Some(Process {
        pid,
        own_pid: own_pid.and_then(|it| it.parse().ok()).unwrap_or(pid),
        mounts: fs::read_link(directory.join("ns/mnt")).ok(),
        network: fs::read_link(directory.join("ns/net")).ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_port_is_found_wherever_its_program_has_put_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let pid = std::process::id() as i32;
        let path = directory.path().join(format!("{pid}-5.sock"));
        let other = directory.path().join("other.sock");
        let unfinished = directory.path().join(format!("{pid}-5.sock.new"));
        let _listeners = [&unfinished, &other].map(|path| UnixListener::bind(path).expect("bound"));
        fs::rename(&unfinished, &path).expect("renamed");
        for found in [all(), of(pid)] {
            assert!(
                found.contains(&path) && !found.contains(&other),
                "{found:?}"
            );
        }
        assert!(!of(1).contains(&path));
        assert!(is_owner(&path, pid) && !is_owner(&path, 1));
    }

    #[test]
    fn of_a_process_that_is_not_there_nothing_is_found() {
        assert_eq!(of(i32::MAX), Vec::<PathBuf>::new());
    }
}

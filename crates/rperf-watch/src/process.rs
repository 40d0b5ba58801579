//! What the system tells of a process, without its port. Any thread.

#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's files, which nobody can exchange"
)]

use crate::failure::{AskError, Failure};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, Uid};
use regex::bytes::Regex;
use rperf_report::terminal_text::shown;
use rperf_session::control_groups::{self, Limit};
use rperf_session::kernel_text::{bytes_in, name_and_fields};
use rperf_session::process_id::ProcessId;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Characters of a command line at most.
const LONGEST_LINE: usize = 4096;

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The process is there.
    There,
    /// A signal or a debugger has stopped it.
    Stopped,
    /// The process has ended, though its parent may not have waited for it.
    Gone,
}

/// The state of the process that has the number `pid` now.
pub fn state(pid: i32) -> State {
    match ProcessId::present(pid).and_then(ProcessId::state) {
        Some('Z' | 'X') => State::Gone,
        Some('T' | 't') => State::Stopped,
        _ if exists(pid) => State::There,
        _ => State::Gone,
    }
}

fn exists(pid: i32) -> bool {
    matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM))
}

/// The user with whose rights the process runs now, where the system tells.
pub(crate) fn user(pid: i32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    // The real user comes first.
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Why the process can't be asked, as far as the system knows that.
pub(crate) fn check(pid: i32) -> Result<(), Failure> {
    if !exists(pid) {
        return Err(Failure::NoProcess);
    }
    let state = state(pid);
    if state == State::Gone {
        return Err(AskError::Closed.into());
    }
    let own = Uid::effective();
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| Uid::from_raw(found.uid()));
    match owner {
        Ok(owner) if !own.is_root() && owner != own => Err(Failure::OtherUser(owner.as_raw())),
        _ if state == State::Stopped => Err(Failure::Stopped),
        _ => Ok(()),
    }
}

/// The command line that its process was started with, or has given itself: known without its port.
pub fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&words).replace('\0', " ");
    let text: String = text.trim().chars().take(LONGEST_LINE).collect();
    shown(&text).into_owned()
}

/// The name of its program; empty where that isn't known.
pub fn name(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    shown(name.trim_end()).into_owned()
}

/// The resident bytes of the process, where the system tells.
pub fn resident(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    bytes_in(&status, "VmRSS:")
}

/// The limit of memory of the process's control group, and those above it.
pub fn limit(pid: i32) -> Option<Limit> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    control_groups::limit(Path::new(control_groups::GROUPS), &groups)
}

/// Where the stack of its program begins: another program in the same process has another one. `None` where
/// the system doesn't tell.
pub(crate) fn start_of_stack(pid: i32) -> Option<u64> {
    const FIELD_AFTER_STATE: usize = 25;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = name_and_fields(&stat)?;
    let start = fields.split(' ').nth(FIELD_AFTER_STATE)?.parse().ok()?;
    (start > 1).then_some(start)
}

/// Whether a thread of the process is running or ready to, but for the port's own.
pub fn is_busy(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.any(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        name_and_fields(&stat)
            .is_some_and(|(name, fields)| name != "rperf-port" && fields.starts_with('R'))
    })
}

/// Text that each program has in which Ruby is linked, whatever its own name is.
const RUBY_TEXT: &str = "RUBY_ENGINE_VERSION";

/// Bytes of a program at most that are searched for it.
const LONGEST_PROGRAM: u64 = 256 << 20;

/// Whether the process has Ruby in it, as a library or linked into the program; `None` where that
/// can't be known.
pub(crate) fn runs_ruby(pid: i32) -> Option<bool> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    let lines = maps.split(|byte| *byte == b'\n');
    let mut names = lines.filter_map(|line| line.rsplit(|byte| *byte == b'/').next());
    if names.any(|name| name.starts_with(b"libruby")) {
        return Some(true);
    }
    let mut program = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/exe")).ok()?;
    file.take(LONGEST_PROGRAM).read_to_end(&mut program).ok()?;
    Regex::new(RUBY_TEXT)
        .ok()
        .map(|text| text.is_match(&program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_without_ruby_is_known() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a child");
        let found = runs_ruby(child.id() as i32);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert_eq!(found, Some(false));
        assert_eq!(runs_ruby(i32::MAX), None);
    }

    #[test]
    fn a_process_has_resident_memory() {
        let own = std::process::id() as i32;
        let found = resident(own).map(|it| it > 100_000);
        let known = cfg!(target_os = "linux").then_some(true);
        assert_eq!((found, start_of_stack(own).map(|_| true)), (known, known));
        assert_eq!(
            (
                resident(i32::MAX),
                start_of_stack(i32::MAX),
                limit(i32::MAX)
            ),
            (None, None, None)
        );
    }

    #[test]
    fn a_process_is_there_or_gone() {
        assert_eq!(state(std::process::id() as i32), State::There);
        assert_eq!(state(i32::MAX), State::Gone);
        assert!(matches!(check(i32::MAX), Err(Failure::NoProcess)));
        assert_eq!(user(i32::MAX), None);
        let own = Uid::effective().as_raw();
        let known = cfg!(target_os = "linux").then_some(own);
        assert_eq!(user(std::process::id() as i32), known);
    }
}

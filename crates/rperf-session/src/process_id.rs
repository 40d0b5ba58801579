//! Which process is meant, also after its number was given to another one. Any
//! thread.

#![expect(
    clippy::disallowed_methods,
    reason = "the kernel's files, which nobody can exchange"
)]

use crate::kernel_text::name_and_fields;
use std::fs;

/// A process: its number, and when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, in the kernel's ticks; 0 where that isn't known.
    pub start: u64,
}

impl ProcessId {
    /// The process that calls this.
    pub fn own() -> Self {
        let pid = std::process::id() as i32;
        let start = kernel_state(pid).map_or(0, |(_, start)| start);
        ProcessId { pid, start }
    }

    /// The process that has this number now, if the system tells when it started.
    pub fn present(pid: i32) -> Option<Self> {
        kernel_state(pid).map(|(_, start)| ProcessId { pid, start })
    }

    /// The process that has this number now; whichever has it, where the system doesn't tell when it
    /// started.
    pub fn named(pid: i32) -> Self {
        Self::present(pid).unwrap_or(ProcessId { pid, start: 0 })
    }

    /// The kernel's letter for its state, such as `T` if it is stopped; `None` if the system doesn't
    /// tell, or it is gone.
    pub fn state(self) -> Option<char> {
        let (state, start) = kernel_state(self.pid)?;
        (self.start == start).then_some(state)
    }

    /// Whether it still runs. One that has ended and waits for its parent doesn't.
    pub fn is_alive(self) -> bool {
        match kernel_state(self.pid) {
            Some((state, start)) => {
                !matches!(state, 'Z' | 'X') && (self.start == 0 || self.start == start)
            }
            None => can_be_signalled(self.pid),
        }
    }
}

/// The process that has started the one with this number, where the system tells.
pub fn parent(pid: i32) -> Option<i32> {
    let stat = stat(pid)?;
    let (_, fields) = name_and_fields(&stat)?;
    fields.split(' ').nth(1)?.parse().ok().filter(|it| *it > 0)
}

/// State and start from /proc, where there is such a thing.
fn kernel_state(pid: i32) -> Option<(char, u64)> {
    parse(&stat(pid)?)
}

/// What the kernel says of the process, by its first thread. QEMU makes up `/proc/PID/stat` for the
/// program that reads of itself: what it says has started with the parent, or anew with each exec.
fn stat(pid: i32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).ok()
}

fn parse(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = name_and_fields(stat)?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

fn can_be_signalled(pid: i32) -> bool {
    // SAFETY: signal 0 only asks; kill(2) takes any number.
    pid > 0 && unsafe { libc::kill(pid, 0) } == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn this_process_is_alive_and_one_with_its_number_from_before_is_not() {
        let own = ProcessId::own();
        assert!(own.is_alive());
        assert!(ProcessId { start: 0, ..own }.is_alive());
        let start = own.start + 1;
        assert_eq!(ProcessId { start, ..own }.is_alive(), own.start == 0);
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_even_before_it_is_waited_for() {
        let mut child = Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a child");
        let pid = child.id() as i32;
        let id = ProcessId {
            pid,
            start: kernel_state(pid).map_or(0, |(_, start)| start),
        };
        assert!(id.is_alive());
        child.kill().expect("killed");
        if id.start > 0 {
            while id.is_alive() {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        child.wait().expect("waited for");
        assert!(!id.is_alive());
        assert!(!ProcessId { pid: -1, start: 0 }.is_alive());
    }

    #[test]
    fn names_with_parentheses_are_no_obstacle() {
        let zeros = "0 ".repeat(18);
        assert_eq!(
            parse(&format!("7 (a) b) S {zeros}4321 9")),
            Some(('S', 4321))
        );
        assert_eq!(parse("7 (a) S 0 1"), None);
    }
}

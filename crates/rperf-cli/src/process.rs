//! Runs a program as a child, waits for it, and ends as it did. Called by
//! `launch`, on the main thread, which waits here for the program's whole life.

pub(crate) mod command;
pub(crate) mod forward;

use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use rperf_session::os::{self, OsStats};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// What a program took, as the shell's `time` has it: with all the processes that
/// it waited for.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When it was started, on the monotonic clock.
    pub began_ns: u64,
    /// Its time on the clock.
    pub real_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub sys_ns: u64,
    /// The peak RSS of the largest of these processes.
    pub max_rss_bytes: u64,
    /// The peak RSS of rperf itself before, which the system can have counted for them.
    pub inherited_rss_bytes: u64,
}

/// Runs the program to its end. It shares our terminal, input and output, and
/// gets the signals that are sent to us.
pub fn run(command: &mut Command) -> io::Result<(End, Times)> {
    forward::install(command)?;
    let inherited_rss_bytes = os::inherited_peak();
    let began_ns = os::monotonic_ns();
    let child = command.spawn()?;
    let pid = child.id() as i32;
    forward::to_program(pid);
    wait_for_end(pid);
    forward::to_nobody();
    // Of this child alone: whoever became this process by exec may have had others before.
    let (status, usage) = reap(pid)?;
    let times = Times {
        began_ns,
        real_ns: os::monotonic_ns().saturating_sub(began_ns),
        user_ns: usage.user_ns,
        sys_ns: usage.sys_ns,
        max_rss_bytes: usage.max_rss_bytes,
        inherited_rss_bytes,
    };
    Ok((End::from(status), times))
}

/// Takes the status of a child that has ended, and what it and those that it has waited for have used.
fn reap(pid: i32) -> io::Result<(ExitStatus, OsStats)> {
    // SAFETY: all fields of rusage are integers, for which zero bytes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: `status` and `usage` are writable for the whole call.
        if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } == pid {
            return Ok((ExitStatus::from_raw(status), (&usage).into()));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Waits for the end of the program, to which signals have gone until then.
pub fn end_of(child: &mut Child) -> io::Result<End> {
    wait_for_end(child.id() as i32);
    forward::to_nobody();
    child.wait().map(End::from)
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => End::Signal(signal),
            None => End::Status(status.code().unwrap_or(crate::FAILURE)),
        }
    }
}

/// Whether this child of ours has ended, for which nobody has waited yet.
pub fn has_ended(pid: i32) -> bool {
    match look_at(pid, libc::WNOHANG) {
        Ok(has_ended) => has_ended,
        Err(error) => error.kind() != io::ErrorKind::Interrupted,
    }
}

/// Waits without reaping, so that no other process can get the id meanwhile.
fn wait_for_end(pid: i32) {
    while look_at(pid, 0).is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {}
}

/// Whether a child has ended, which isn't reaped. The call waits for it but with `WNOHANG`.
fn look_at(pid: i32, flags: libc::c_int) -> io::Result<bool> {
    // SAFETY: all fields of siginfo_t are integers and pointers, for which zero
    // bytes are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = flags | libc::WEXITED | libc::WNOWAIT;
    // SAFETY: `info` is writable for the whole call.
    let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it in, or left the zero, which is no child's.
    Ok(unsafe { info.si_pid() } == pid)
}

/// Ends this process by the signal that ended the program, so that a shell sees
/// the same; no second core file is written. Returns a status for the case that
/// the signal doesn't end us.
pub fn end_by_signal(signal: i32) -> i32 {
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    // SIGKILL has no action to restore; kill(2) below still works.
    let _ = forward::restore_default(signal);
    // SAFETY: kill(2) touches no memory of ours; the signal is meant to end us.
    unsafe { libc::kill(libc::getpid(), signal) };
    128 + signal
}

/// How a process has ended, behind its name.
pub fn ended_by(signal: i32) -> String {
    format!("was ended by {}", signal_name(signal))
}

/// `SIGTERM` and so on; a number for signals that have no name.
fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(
        |_| format!("signal {signal}"),
        |signal| signal.as_str().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> End {
        timed(script).0
    }

    fn timed(script: &str) -> (End, Times) {
        run(Command::new("/bin/sh").args(["-c", script])).expect("a shell")
    }

    #[test]
    fn times_are_those_of_all_processes() {
        let (_, times) =
            timed("sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; sleep 0.1");
        assert!(times.user_ns > 1_000_000);
        assert!(times.real_ns > 100_000_000 + times.user_ns / 2);
        assert!(times.max_rss_bytes > 100_000);
    }

    #[test]
    fn children_that_ended_before_are_not_counted() {
        let loops = |count: u32| {
            timed(&format!(
                "i=0; while [ $i -lt {count} ]; do i=$((i+1)); done"
            ))
        };
        let (_, before) = loops(300_000);
        let (_, times) = loops(1);
        assert!(times.user_ns < before.user_ns / 2);
    }

    #[test]
    fn ends_are_told_apart() {
        assert_eq!(shell("exit 3"), End::Status(3));
        assert_eq!(shell("kill -TERM $$"), End::Signal(libc::SIGTERM));
        assert_eq!(shell("kill -KILL $$"), End::Signal(libc::SIGKILL));
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(libc::SIGTERM), "SIGTERM");
        assert_eq!(signal_name(60), "signal 60");
    }
}

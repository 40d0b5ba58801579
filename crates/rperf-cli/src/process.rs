//! Runs a program as a child, waits for it, and ends as it did. Called by
//! `launch`, on Ruby's main thread, which waits here for the program's whole life.

use crate::forward;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Status(i32),
    /// By this signal.
    Signal(i32),
}

/// Runs the program to its end. It shares our terminal, input and output, and
/// gets the signals that are sent to us.
pub fn run(command: &mut Command) -> io::Result<End> {
    forward::install()?;
    let mut child = command.spawn()?;
    let pid = child.id() as i32;
    forward::to_program(pid);
    wait_for_end(pid);
    forward::to_nobody();
    let status = child.wait()?;
    Ok(match status.signal() {
        Some(signal) => End::Signal(signal),
        None => End::Status(status.code().unwrap_or(crate::FAILURE)),
    })
}

/// Waits without reaping, so that no other process can get the id meanwhile.
fn wait_for_end(pid: i32) {
    // SAFETY: all fields of siginfo_t are integers and pointers, for which zero
    // bytes are valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: `info` is writable for the whole call.
        let result = unsafe { libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) };
        if result == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
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

/// `SIGTERM` and so on; a number for signals that have no name.
pub fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(
        |_| format!("signal {signal}"),
        |signal| signal.as_str().to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> End {
        run(Command::new("/bin/sh").args(["-c", script])).expect("a shell")
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

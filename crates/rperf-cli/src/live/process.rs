//! The way to the port of a process that the user names. On Ruby's main thread.

use crate::{FAILURE, Refusal};
use nix::unistd::{Uid, User};
use rperf_live::client::{AskError, Client};
use rperf_live::{find, shown};
use rperf_session::process_id::ProcessId;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Connects to the port of the process `pid`.
pub fn connect(pid: i32) -> Result<Client, Refusal> {
    check(pid)?;
    let mut last = None;
    for path in find::of(pid) {
        match Client::connect(&path).and_then(|client| client.expect_pid(pid)) {
            Ok(client) => return Ok(client),
            Err(AskError::Closed) => {}
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(error) => failed(pid, &error),
        None => refusal(format!(
            "process {pid}{} has no port. Start it with RPERF_LISTEN=1 (and rperf in its Gemfile), or \
             call Rperf.listen",
            name_of(pid)
        )),
    })
}

/// What is known of it before it is asked.
fn check(pid: i32) -> Result<(), Refusal> {
    // SAFETY: signal 0 only asks; kill(2) takes any number.
    let is_there = unsafe { libc::kill(pid, 0) } == 0
        || std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM);
    if !is_there {
        return Err(refusal(format!("there is no process {pid}")));
    }
    let own = Uid::effective();
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| Uid::from_raw(found.uid()));
    if let Ok(owner) = owner
        && !own.is_root()
        && owner != own
    {
        let user = User::from_uid(owner).ok().flatten();
        let user = user.map_or_else(|| format!("user {owner}"), |user| user.name);
        let message = format!("process {pid} belongs to {user}: run this as {user} or root");
        return Err(refusal(message));
    }
    if is_stopped(pid) {
        let message = format!("{pid} was stopped (SIGSTOP): nothing can be asked until SIGCONT");
        return Err(refusal(message));
    }
    Ok(())
}

/// Whether it was stopped by a signal or a debugger.
pub fn is_stopped(pid: i32) -> bool {
    let state = ProcessId::present(pid).and_then(ProcessId::state);
    matches!(state, Some('T' | 't'))
}

/// `path`, with what it takes to leave the program's main thread alone unless it may be woken.
pub fn waking(path: &str, may_wake: bool) -> String {
    let query = if may_wake { "" } else { "?wake=0" };
    format!("{path}{query}")
}

/// What is said when the process `pid` couldn't be asked.
pub fn failed(pid: i32, error: &AskError) -> Refusal {
    refusal(match error {
        AskError::Closed => format!("the program {pid} has ended"),
        error => format!("{pid}: {error}"),
    })
}

fn name_of(pid: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    match shown(name.trim_end()) {
        name if name.is_empty() => String::new(),
        name => format!(" ({name})"),
    }
}

fn refusal(message: String) -> Refusal {
    Refusal {
        message,
        status: FAILURE,
    }
}

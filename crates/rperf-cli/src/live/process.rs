//! The way to the port of a process that the user names. On Ruby's main thread.

use crate::{FAILURE, Refusal};
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::{Pid, Uid, User};
use regex::bytes::Regex;
use rperf_protocol::hello::{Hello, Keeper};
use rperf_report::terminal_text::shown;
use rperf_session::process_id::ProcessId;
use rperf_watch::client::{AskError, Client};
use rperf_watch::find;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// How long a program may take to say what it is: a port answers without the VM.
pub const PATIENCE: Duration = Duration::from_millis(500);

/// Said of programs in which only this is known.
pub const KEPT: &str = "a thread keeps the GVL in native code";

/// Characters of a command line at most.
const LONGEST_LINE: usize = 4096;

/// The share of a CPU, in percent, from which on a program isn't one whose threads all wait.
const WORKS: f64 = 50.0;

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
        None if runs_ruby(pid) == Some(false) => refusal(format!(
            "process {pid}{} doesn't run Ruby; 'rperf ps' lists the Ruby programs that can be asked",
            name_of(pid)
        )),
        None => refusal(format!(
            "process {pid}{} has no port. Start it with RPERF_LISTEN=1 (and rperf in its Gemfile), or \
             call Rperf.listen",
            name_of(pid)
        )),
    })
}

/// What is known of it before it is asked.
fn check(pid: i32) -> Result<(), Refusal> {
    if !exists(pid) {
        return Err(refusal(format!("there is no process {pid}")));
    }
    if !is_there(pid) {
        return Err(failed(pid, &AskError::Closed));
    }
    let own = Uid::effective();
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| Uid::from_raw(found.uid()));
    if let Ok(owner) = owner
        && !own.is_root()
        && owner != own
    {
        let user = User::from_uid(owner).ok().flatten();
        let user = user.map_or_else(|| format!("user {owner}"), |user| user.name);
        let message = match owner.is_root() {
            true => format!("process {pid} belongs to root: run this as root"),
            false => format!("process {pid} belongs to {user}: run this as {user} or root"),
        };
        return Err(refusal(message));
    }
    if is_stopped(pid) {
        return Err(refusal(stopped(pid)));
    }
    Ok(())
}

fn exists(pid: i32) -> bool {
    matches!(kill(Pid::from_raw(pid), None), Ok(()) | Err(Errno::EPERM))
}

/// Whether it runs: one that has ended may not have been waited for.
pub fn is_there(pid: i32) -> bool {
    let state = ProcessId::present(pid).and_then(ProcessId::state);
    exists(pid) && !matches!(state, Some('Z' | 'X'))
}

/// What is said of one that was stopped.
pub fn stopped(pid: i32) -> String {
    format!("{pid} was stopped (SIGSTOP): nothing can be asked until SIGCONT")
}

/// Whether it was stopped by a signal or a debugger.
pub fn is_stopped(pid: i32) -> bool {
    let state = ProcessId::present(pid).and_then(ProcessId::state);
    matches!(state, Some('T' | 't'))
}

/// What the process says of itself now, on a connection of its own: an answer that comes late would
/// be taken for another one.
pub fn greeted(pid: i32) -> Option<Hello> {
    connect(pid).ok()?.hello_within(PATIENCE).ok()
}

/// Why nothing comes of a program whose VM runs nothing for us, and isn't known to be kept from it.
pub fn quiet(before: &Hello, now: Option<&Hello>) -> String {
    let share = now.map_or(0.0, |now| {
        let elapsed = now.clock_ns.saturating_sub(before.clock_ns).max(1);
        let used = now.cpu_ns.saturating_sub(before.cpu_ns);
        used as f64 / elapsed as f64 * 100.0
    });
    match share >= WORKS {
        true => format!("runs no Ruby code just now, but native code ({share:.0} % CPU)"),
        false => {
            "runs no Ruby code just now: all its threads wait, or one keeps the GVL in native code"
                .into()
        }
    }
}

/// Which thread keeps the GVL of a program that doesn't answer.
pub fn kept(keeper: Option<&Keeper>, silence: Duration) -> String {
    keeper.map_or_else(|| KEPT.into(), |keeper| keeper.text(silence))
}

/// What is said when the process `pid` couldn't be asked.
pub fn failed(pid: i32, error: &AskError) -> Refusal {
    refusal(match error {
        AskError::Closed => format!("the program {pid} has ended"),
        error => format!("{pid}: {error}"),
    })
}

/// What its process was started as, or has called itself: known without its port.
pub fn command_line(pid: i32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&words).replace('\0', " ");
    let text: String = text.trim().chars().take(LONGEST_LINE).collect();
    shown(&text).into_owned()
}

/// Text that each program has in which Ruby is linked, whatever its own name is.
const RUBY_TEXT: &str = "RUBY_ENGINE_VERSION";

/// Bytes of a program at most that are searched for it.
const LONGEST_PROGRAM: u64 = 256 << 20;

/// Whether the process has Ruby in it, as a library or linked into the program; `None` where that
/// can't be known.
fn runs_ruby(pid: i32) -> Option<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(clock_ns: u64, cpu_ns: u64) -> Hello {
        let golden = include_bytes!("../../../rperf-protocol/golden/least_hello.json");
        let hello = rperf_protocol::json::read(golden).expect("one");
        Hello {
            clock_ns,
            cpu_ns,
            ..hello
        }
    }

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
    fn programs_that_use_a_cpu_do_not_just_wait() {
        let before = hello(1_000, 500);
        let works = quiet(&before, Some(&hello(2_000, 1_480)));
        assert_eq!(
            works,
            "runs no Ruby code just now, but native code (98 % CPU)"
        );
        for now in [Some(hello(2_000, 510)), None] {
            assert!(quiet(&before, now.as_ref()).contains("all its threads wait, or one keeps"));
        }
    }

    #[test]
    fn a_thread_that_keeps_the_gvl_is_named_with_what_it_does() {
        let keeper = |state: &str| Keeper {
            tid: 9,
            state: state.into(),
        };
        let text = |state| kept(Some(&keeper(state)), Duration::from_millis(2345));
        let start = "thread 9 has kept the GVL in native code for 2.3 s";
        assert_eq!(text("sleep"), format!("{start} (sleep)"));
        assert_eq!(text(""), start);
        assert_eq!(kept(None, Duration::ZERO), KEPT);
    }
}

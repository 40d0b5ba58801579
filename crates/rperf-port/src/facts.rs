//! What is known of this program without its VM. On the port's thread.

use crate::state::Port;
use crate::waits::native_thread;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};
use rperf_protocol::PROTOCOL;
use rperf_protocol::hello::{GvlHolder, Hello};
use rperf_session::process_id::ProcessId;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

/// Bytes of the command line that are shown.
const MAX_PROGRAM: u64 = 4096;

const NS: u64 = 1_000_000_000;

/// The answer to `/v1/hello`.
/// `silence`: how long the VM has been asked in vain; `holder`: the native thread that has had the GVL
/// for so long.
pub fn hello(port: &Port, clients: usize, silence: Duration, holder: Option<i32>) -> Hello {
    let program = &port.program;
    let running = (program.session)();
    let ProcessId { pid, start } = ProcessId::own();
    Hello {
        protocol: PROTOCOL,
        rperf: env!("CARGO_PKG_VERSION").into(),
        ruby: program.ruby.clone(),
        pid,
        start,
        program: command_line(),
        roots: program.roots.clone(),
        rperf_directories: program.rperf_directories.clone(),
        uptime_ns: uptime_ns(start),
        cpu_ns: clock_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID),
        clock_ns: now_ns(),
        beginner: running.as_ref().map(|it| it.beginner).unwrap_or_default(),
        session: running.map(|it| it.session),
        tcp: port.number,
        clients: u32::try_from(clients).unwrap_or(u32::MAX),
        silent_ns: u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX),
        holder: holder.map(gvl_holder),
    }
}

/// What is known of the native thread that has the GVL.
pub fn gvl_holder(tid: i32) -> GvlHolder {
    let state = native_thread(tid).map_or_else(String::new, |thread| match thread.is_running {
        true => "running".into(),
        false => thread.waits_in,
    });
    GvlHolder { tid, state }
}

/// Which process this is, for people.
pub fn process() -> String {
    let pid = ProcessId::own().pid;
    format!("process {pid}: {}", command_line())
}

fn command_line() -> String {
    let text = String::from_utf8_lossy(&words()).replace('\0', " ");
    text.trim().into()
}

/// The words of the command line, with a zero byte between them: as the system has them, with the
/// title that takes their place.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
pub fn words() -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open("/proc/self/cmdline");
    let _ = file.and_then(|file| file.take(MAX_PROGRAM).read_to_end(&mut bytes));
    if bytes.is_empty() {
        bytes = std::env::args_os().fold(bytes, |mut bytes, word| {
            bytes.extend_from_slice(word.as_encoded_bytes());
            bytes.push(0);
            bytes
        });
        bytes.truncate(MAX_PROGRAM as usize);
    }
    // A title is as long as the command line was before, with blanks or zero bytes at its end.
    let end = bytes.iter().rposition(|byte| !b" \0".contains(byte));
    bytes.truncate(end.map_or(0, |end| end + 1));
    bytes
}

/// `None` where the system doesn't tell when the process started.
fn uptime_ns(start: u64) -> Option<u64> {
    if start == 0 {
        return None;
    }
    let ticks_per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    #[cfg(target_os = "linux")]
    let since_boot = clock_ns(ClockId::CLOCK_BOOTTIME);
    #[cfg(not(target_os = "linux"))]
    let since_boot = clock_ns(ClockId::CLOCK_MONOTONIC);
    let started = u128::from(start) * u128::from(NS) / (ticks_per_second.max(1) as u128);
    Some(since_boot.saturating_sub(u64::try_from(started).ok()?))
}

/// The monotonic clock.
pub fn now_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

fn clock_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |time| {
        let part = |number: i64| u64::try_from(number).unwrap_or(0);
        part(time.tv_sec()) * NS + part(time.tv_nsec())
    })
}

//! What the operating system has counted about processes, and its clock. Any thread.

use crate::kernel_text::bytes_in;
use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Waits. std's `sleep` panics where a filter for system calls refuses `clock_nanosleep`.
pub fn sleep(time: Duration) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        // `poll` counts whole ms.
        let left = left + Duration::from_micros(999);
        let time = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        if poll(&mut [], time) != Err(Errno::EINTR) {
            return;
        }
    }
}

/// Bytes of a block as Linux counts them; other systems have other ideas.
const BLOCK: u64 = 512;

/// The statistics, since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OsStats {
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub sys_ns: u64,
    /// The most memory that was resident at a time.
    pub max_rss_bytes: u64,
    /// Switches because the process waited.
    pub voluntary_switches: u64,
    /// Switches because another one was to run.
    pub involuntary_switches: u64,
    /// Bytes read from and written to storage, where the system tells.
    pub disk: Option<DiskStats>,
}

/// Bytes that went to and from storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskStats {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl OsStats {
    /// The statistics of this process as of now; zeros where they can't be had.
    pub fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF);
        usage.map_or_else(|_| Self::default(), |usage| usage.as_ref().into())
    }
}

impl From<&libc::rusage> for OsStats {
    fn from(usage: &libc::rusage) -> Self {
        // macOS counts in bytes, all others in kilobytes.
        let rss_unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        Self {
            user_ns: nanoseconds(usage.ru_utime),
            sys_ns: nanoseconds(usage.ru_stime),
            max_rss_bytes: count(usage.ru_maxrss) * rss_unit,
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            disk: cfg!(target_os = "linux").then(|| DiskStats {
                read_bytes: count(usage.ru_inblock) * BLOCK,
                write_bytes: count(usage.ru_oublock) * BLOCK,
            }),
        }
    }
}

/// The most memory of this process that the system can count for a child, too: Linux takes it over to the
/// program that a child becomes. 0 where it doesn't.
pub fn inherited_peak() -> u64 {
    if !cfg!(target_os = "linux") {
        return 0;
    }
    peak_of_program().unwrap_or_else(|| OsStats::now().max_rss_bytes)
}

/// The most that was resident since this program began. The process has had more if it was another one before.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn peak_of_program() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    bytes_in(&status, "VmHWM:")
}

/// The clock on which members tell when they began.
pub fn monotonic_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        count(now.tv_sec()) * 1_000_000_000 + count(now.tv_nsec())
    })
}

fn count(number: impl Into<i64>) -> u64 {
    number.into().try_into().unwrap_or(0)
}

fn nanoseconds(time: libc::timeval) -> u64 {
    count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_statistics() {
        let now = OsStats::now();
        assert!(now.max_rss_bytes > 100_000);
        assert!(now.user_ns + now.sys_ns > 0);
        if cfg!(target_os = "linux") {
            let peak = peak_of_program().expect("a peak");
            assert!((100_000..=OsStats::now().max_rss_bytes + (4 << 20)).contains(&peak));
        }
    }
}

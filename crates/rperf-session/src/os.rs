//! What the operating system has counted about processes, and its clock. Any thread.

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{ClockId, clock_gettime};

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
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// The statistics of the children that this process has waited for, with those of theirs.
    pub fn of_children() -> Self {
        Self::of(UsageWho::RUSAGE_CHILDREN)
    }

    fn of(who: UsageWho) -> Self {
        getrusage(who).map_or_else(|_| Self::default(), |usage| (&usage).into())
    }
}

impl From<&Usage> for OsStats {
    fn from(usage: &Usage) -> Self {
        // macOS counts in bytes, all others in kilobytes.
        let rss_unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        Self {
            user_ns: nanoseconds(usage.user_time()),
            sys_ns: nanoseconds(usage.system_time()),
            max_rss_bytes: count(usage.max_rss()) * rss_unit,
            voluntary_switches: count(usage.voluntary_context_switches()),
            involuntary_switches: count(usage.involuntary_context_switches()),
            disk: cfg!(target_os = "linux").then(|| DiskStats {
                read_bytes: count(usage.block_reads()) * BLOCK,
                write_bytes: count(usage.block_writes()) * BLOCK,
            }),
        }
    }
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

fn nanoseconds(time: TimeVal) -> u64 {
    count(time.tv_sec()) * 1_000_000_000 + count(time.tv_usec()) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_statistics() {
        let now = OsStats::now();
        assert!(now.max_rss_bytes > 100_000);
        assert!(now.user_ns + now.sys_ns > 0);
    }
}

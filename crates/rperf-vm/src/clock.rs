//! The clocks. Each is one `clock_gettime`: async-signal-safe, on any thread.

use crate::ids::NativeId;
#[cfg(target_os = "linux")]
use std::ptr;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

/// CLOCK_MONOTONIC in ns: the time axis of ticks, events and wall weights.
#[inline]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

/// CLOCK_REALTIME in ns since the Unix epoch: only for the profile's start time.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME).unwrap_or(0)
}

/// CPU time of the calling native thread in ns. On Linux this is a system call
/// of about a microsecond, against some 40 ns for [`monotonic_ns`].
#[inline]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(0)
}

/// CPU time of the process in ns: a system call, too.
pub fn process_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

/// CPU time of another native thread of this process, where the system can tell.
pub fn thread_cpu_of(tid: NativeId) -> Option<u64> {
    if cfg!(target_os = "linux") && tid.is_known() {
        // The kernel's encoding of "scheduler time of thread `tid`" (clock ids
        // below 0; see clock_getcpuclockid(3) and posix-timers.h).
        let clock = (!(tid.0 as libc::clockid_t) << 3) | 0b110;
        read(clock)
    } else {
        None
    }
}

/// Waits. std's `sleep` panics where a filter for system calls refuses `clock_nanosleep`; Ruby itself waits with
/// `ppoll`. Where that is refused, too, other threads run, and nothing is waited for.
#[cfg(target_os = "linux")]
pub fn sleep(time: Duration) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let time = libc::timespec {
            // The crate libc deprecates the type's name for musl.
            tv_sec: left.as_secs() as _,
            tv_nsec: left.subsec_nanos().into(),
        };
        // SAFETY: there are no descriptors and no mask; the time is read only.
        let outcome = unsafe { libc::ppoll(ptr::null_mut(), 0, &raw const time, ptr::null()) };
        if outcome == 0 {
            return;
        }
        // SAFETY: the calling thread's own.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            std::thread::yield_now();
            return;
        }
    }
}

/// Waits.
#[cfg(not(target_os = "linux"))]
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

/// The kernel's id of the calling native thread.
pub fn thread_id() -> NativeId {
    #[cfg(target_os = "linux")]
    {
        // The function of this name is missing in glibc before 2.30.
        // SAFETY: the call takes no arguments and can't fail.
        NativeId(unsafe { libc::syscall(libc::SYS_gettid) as u32 })
    }
    #[cfg(not(target_os = "linux"))]
    {
        NativeId::NONE
    }
}

/// A time since the Unix epoch as people write it: 2026-11-22T14:20:01.123Z.
pub fn utc(ns: u64) -> String {
    let (ms, seconds) = (ns / 1_000_000 % 1_000, ns / 1_000_000_000);
    let (day, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Year, month and day of a day since the Unix epoch, in years that begin in March.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    (era * 400 + year, month, day)
}

#[inline]
fn read(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid timespec that the call fills in.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    (!failed).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_move_forward() {
        let (wall, cpu) = (monotonic_ns(), thread_cpu_ns());
        let mut sum = 0u64;
        while monotonic_ns() < wall + 2_000_000 {
            sum = sum.wrapping_add(monotonic_ns());
        }
        assert!(sum > 0);
        assert!(thread_cpu_ns() > cpu);
        assert!(realtime_ns() > 1_600_000_000_000_000_000);
    }

    #[test]
    fn times_are_written_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.007Z"),
            (951_782_399, "2000-02-28T23:59:59.007Z"),
            (951_868_800, "2000-03-01T00:00:00.007Z"),
            (1_709_164_800, "2024-02-29T00:00:00.007Z"),
            (1_735_689_599, "2024-12-31T23:59:59.007Z"),
        ] {
            assert_eq!(utc(seconds * 1_000_000_000 + 7_000_000), text);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_cpu_time_of_a_thread_can_be_read_by_its_id() {
        let before = thread_cpu_ns();
        let by_id = thread_cpu_of(thread_id()).expect("own thread");
        let after = thread_cpu_ns();
        assert!(before <= by_id && by_id <= after);
        assert_eq!(thread_cpu_of(NativeId::NONE), None);
    }
}

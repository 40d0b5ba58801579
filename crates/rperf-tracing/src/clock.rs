//! The clocks of tracing: which one there is, its reading at each event, and the length of its
//! ticks. A reading is one instruction or one call without a system call; any thread.

use rperf_vm::clock::{monotonic_ns, realtime_ns, sleep};
use std::time::Duration;
use timekeeper::noted_ns;

pub(crate) mod cpu_times;
pub(crate) mod pauses;
pub(crate) mod session_time;
pub(crate) mod timekeeper;

/// What the times between events are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceClock {
    /// Calls are counted only.
    None,
    /// CLOCK_MONOTONIC.
    Monotonic,
    /// The processor's counter.
    Counter,
    /// CLOCK_MONOTONIC as a [`Timekeeper`](super::Timekeeper) has noted it last.
    Noted,
}

impl TraceClock {
    /// The processor's counter if the kernel trusts it, else CLOCK_MONOTONIC.
    pub fn best() -> Self {
        match is_counter_trusted() {
            true => TraceClock::Counter,
            false => TraceClock::Monotonic,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TraceClock::None => "none",
            TraceClock::Monotonic => "monotonic",
            TraceClock::Counter => "TSC",
            TraceClock::Noted => "tick",
        }
    }

    /// Ticks since some moment.
    #[inline]
    pub fn now(self) -> u64 {
        match self {
            TraceClock::None => 0,
            TraceClock::Monotonic => monotonic_ns(),
            TraceClock::Counter => counter(),
            TraceClock::Noted => noted_ns(),
        }
    }

    /// Nearly the length of a tick in ns, measured in a millisecond.
    pub fn ns_per_tick(self) -> f64 {
        let start = self.reading();
        sleep(Duration::from_millis(1));
        self.reading().ns_per_tick_since(&start)
    }

    /// A moment on all clocks.
    pub fn reading(self) -> ClockReading {
        let monotonic_ns = monotonic_ns();
        ClockReading {
            ticks: match self {
                // Sums are right to the end.
                TraceClock::Noted => monotonic_ns,
                _ => self.now(),
            },
            monotonic_ns,
            realtime_ns: realtime_ns(),
        }
    }
}

/// A moment as the clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockReading {
    /// On the clock of tracing.
    pub ticks: u64,
    /// On CLOCK_MONOTONIC.
    pub monotonic_ns: u64,
    /// Since the Unix epoch.
    pub realtime_ns: u64,
}

impl ClockReading {
    /// How many ns a tick has had since `start`.
    pub fn ns_per_tick_since(&self, start: &ClockReading) -> f64 {
        let ticks = self.ticks.saturating_sub(start.ticks);
        let ns = self.monotonic_ns.saturating_sub(start.monotonic_ns);
        match ticks {
            0 => 1.0,
            ticks => ns as f64 / ticks as f64,
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: the instruction reads a register; programs may use it unless the kernel forbids it,
    // and then it doesn't trust it either.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    monotonic_ns()
}

/// Whether the kernel's own clock is the counter, which runs at one speed and never stops.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn is_counter_trusted() -> bool {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return false;
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let flags = processor.lines().find(|line| line.starts_with("flags"));
    let has = |flag| flags.is_some_and(|line| line.split_whitespace().any(|it| it == flag));
    read(SOURCE).trim() == "tsc" && has("constant_tsc") && has("nonstop_tsc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_have_the_length_that_the_system_clock_says() {
        for clock in [TraceClock::best(), TraceClock::Monotonic] {
            let start = clock.reading();
            std::thread::sleep(std::time::Duration::from_millis(5));
            let end = clock.reading();
            let ns = (end.ticks - start.ticks) as f64 * end.ns_per_tick_since(&start);
            assert!(ns >= 4_900_000.0, "{clock:?}: {ns}");
        }
        let reading = TraceClock::None.reading();
        assert_eq!((reading.ticks, TraceClock::None.now()), (0, 0));
        assert_eq!(reading.ns_per_tick_since(&reading), 1.0);
    }
}

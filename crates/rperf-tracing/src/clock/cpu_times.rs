//! CPU time of frames, without a reading of the CPU clock at each event. A thread that holds the GVL
//! and runs uses CPU time as fast as time passes, but for what the system takes away: it gives the
//! CPU to another process for a while. Such a while is a long gap between two events. So the CPU
//! clock is read after long gaps only, and what is missing since the last reading was taken from
//! the frame of that gap. Under the GVL, at events, on the thread that they are of.

use rperf_vm::GcMoment;

/// A gap is long from so many ticks on: 20 to 100 us, by any clock that is read.
const LONG_GAP: u64 = 100_000;

/// The gap that no gap is longer than: the clock is never read.
const NO_GAP: u64 = u64::MAX;

/// When the CPU clock is read, and the running thread's window: since it was read last. No gap is
/// long without a clock.
#[derive(Debug)]
pub(crate) struct CpuTimes {
    /// A gap of more ticks between two events is a long one.
    long_gap: u64,
    /// The clock of the calling thread, if CPU time is measured.
    read: Option<fn() -> GcMoment>,
    since: Option<GcMoment>,
}

/// A window that has ended, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuWindow {
    /// How long it was.
    pub(crate) passed: u64,
    /// CPU time that its thread has used in it.
    pub(crate) used: u64,
}

impl Default for CpuTimes {
    /// CPU time isn't measured.
    fn default() -> Self {
        Self {
            long_gap: NO_GAP,
            read: None,
            since: None,
        }
    }
}

impl CpuTimes {
    /// From now on CPU time is measured, by this clock of the calling thread.
    pub(crate) fn measure(&mut self, read: fn() -> GcMoment) {
        *self = Self {
            long_gap: LONG_GAP,
            read: Some(read),
            since: None,
        };
    }

    /// Whether CPU time is measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.read.is_some()
    }

    /// Whether the clock is to be read after a gap of so many ticks.
    #[inline]
    pub(crate) fn is_long(&self, gap: u64) -> bool {
        gap > self.long_gap
    }

    /// The window ends, and the next one begins. `None` without a clock, or if there was no window.
    pub(crate) fn next_window(&mut self) -> Option<CpuWindow> {
        let now = self.read?();
        let since = self.since.replace(now)?;
        Some(CpuWindow {
            passed: now.monotonic_ns.saturating_sub(since.monotonic_ns),
            used: now.cpu_ns.saturating_sub(since.cpu_ns),
        })
    }

    /// A window begins, whose thread has got the GVL. Returns its begin, if there is a clock.
    pub(crate) fn begin_window(&mut self) -> Option<GcMoment> {
        let now = self.read?();
        self.since = Some(now);
        Some(now)
    }

    /// There is no window until the next one begins. Returns the begin of the one that there was.
    pub(crate) fn leave_window(&mut self) -> Option<GcMoment> {
        self.since.take()
    }
}

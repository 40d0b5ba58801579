//! CPU time of frames, without a reading of the CPU clock at each event. A thread that holds the GVL
//! and runs uses CPU time as fast as time passes, but for what the system takes away: it gives the
//! CPU to another process for a while. Such a while is a long gap between two events. So the CPU
//! clock is read after long gaps only, and what is missing since the last reading was taken from
//! the frame of that gap. Under the GVL, at events, on the thread that they are of.

use rperf_vm::GcMoment;

/// A gap is long from so many ticks on: 20 to 100 us, by any clock that is read.
pub(crate) const LONG_GAP: u64 = 100_000;

/// The gap that no gap is longer than: the clock is never read.
pub(crate) const NO_GAP: u64 = u64::MAX;

/// The running thread's window: since the CPU clock was read last.
#[derive(Debug)]
pub(crate) struct CpuClock {
    pub(crate) read: fn() -> GcMoment,
    pub(crate) since: Option<GcMoment>,
}

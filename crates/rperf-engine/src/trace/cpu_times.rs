//! CPU time of frames, without a reading of the CPU clock at each event. A thread that holds the GVL
//! and runs uses CPU time as fast as time passes, but for what the system takes away: it gives the
//! CPU to another process for a while. Such a while is a long gap between two events. So the CPU
//! clock is read after long gaps only, and what is missing since the last reading was taken from
//! the frame of that gap. Under the GVL, at events, on the thread that they are of.

use super::state_times::StateTimes;
use crate::gc_progress::GcMoment;
use rustc_hash::FxHashMap;

/// A gap is long from so many ticks on: 20 to 100 us, by any clock that is read.
pub(super) const LONG_GAP: u64 = 100_000;

/// The gap that no gap is longer than: the clock is never read.
pub(super) const NO_GAP: u64 = u64::MAX;

/// The running thread's window: since the CPU clock was read last.
#[derive(Debug)]
pub(super) struct CpuClock {
    pub(super) read: fn() -> GcMoment,
    pub(super) since: Option<GcMoment>,
}

/// What is kept for a thread, in ns.
#[derive(Debug, Default)]
pub(super) struct ThreadCpu {
    /// By node: running time that the system took away.
    pub(super) stolen: FxHashMap<u32, u64>,
    /// CPU time in other states than running.
    pub(super) used: StateTimes,
    /// Its CPU clock as it gave the GVL up.
    pub(super) away: Option<u64>,
}

impl ThreadCpu {
    /// Lets go of what has been measured.
    pub(super) fn clear(&mut self) {
        self.stolen.clear();
        self.used = StateTimes::default();
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.stolen.capacity() * (size_of::<(u32, u64)>() + 1) + self.used.memory()
    }
}

//! The running time of a thread on its way to the sample of a tick.

use crate::{Mode, Times};

/// Running time that no sample has taken yet. It grows as a slice is accounted, without the time of
/// collections in it.
#[derive(Debug, Default)]
pub(super) struct RunningTime {
    pending: Times,
    /// GC time since running time was last accounted.
    gc_in_slice: u64,
}

impl RunningTime {
    /// A slice of this length is accounted.
    #[inline]
    pub(super) fn close_slice(&mut self, length: u64, mode: Mode) {
        if mode == Mode::Wall {
            self.pending.wall_ns += length.saturating_sub(self.gc_in_slice);
        }
        self.gc_in_slice = 0;
    }

    /// The slice has a collection of this length in it.
    pub(super) fn add_gc(&mut self, length: u64) {
        self.gc_in_slice += length;
    }

    /// Adds CPU time with the GVL, without that of collections.
    pub(super) fn add_cpu(&mut self, ns: u64) {
        self.pending.cpu_ns += ns;
    }

    /// Whether samples have taken all.
    pub(super) fn is_sampled(&self) -> bool {
        self.pending.is_zero()
    }

    /// What a sample takes whose tick came `late` ns ago: that time waits for the next one. `None` if there
    /// is nothing before it, in the clock of the `mode`; then all stays.
    pub(super) fn take_until_tick(&mut self, late: u64, mode: Mode) -> Option<Times> {
        let left = Times {
            wall_ns: late.min(self.pending.wall_ns),
            cpu_ns: late.min(self.pending.cpu_ns),
            ..Times::default()
        };
        if self.pending.weight_ns(mode) == left.weight_ns(mode) {
            return None;
        }
        let mut taken = std::mem::replace(&mut self.pending, left);
        taken.wall_ns -= left.wall_ns;
        taken.cpu_ns -= left.cpu_ns;
        Some(taken)
    }

    /// What no sample has taken.
    pub(super) fn take(&mut self) -> Times {
        std::mem::take(&mut self.pending)
    }
}

//! The running time of a thread on its way to the sample of a tick.

use crate::{Mode, Values};

/// Running time that no sample has taken yet. It grows as a slice is accounted, without the time of
/// collections in it.
#[derive(Debug, Default)]
pub(super) struct RunningTime {
    pending: Values,
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

    /// What a sample takes for so many `ticks`, the last of which came `late` ns ago: that time waits for
    /// the next one. `None` if there is nothing before it, in the clock of the `mode`; then all stays.
    pub(super) fn take_until_tick(&mut self, ticks: u64, late: u64, mode: Mode) -> Option<Values> {
        let late_wall = late.min(self.pending.wall_ns);
        let late_cpu = late.min(self.pending.cpu_ns);
        let values = Values {
            count: ticks,
            wall_ns: self.pending.wall_ns - late_wall,
            cpu_ns: self.pending.cpu_ns - late_cpu,
            ..Values::default()
        };
        if values.weight_ns(mode) == 0 {
            return None;
        }
        self.pending = Values {
            count: 0,
            wall_ns: late_wall,
            cpu_ns: late_cpu,
            ..Values::default()
        };
        Some(values)
    }

    /// What no sample has taken.
    pub(super) fn take(&mut self) -> Values {
        std::mem::take(&mut self.pending)
    }
}

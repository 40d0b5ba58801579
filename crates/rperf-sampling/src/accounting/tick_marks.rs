//! Which ticks a thread's samples stand for: a tick makes one sample at most, and none for running time
//! that stood still.

use rperf_vm::GcWork;

/// The ticks that decide about the next one's sample, by their times. 0: there was none yet.
#[derive(Debug, Default)]
pub(super) struct TickMarks {
    /// The last one that made a sample.
    sampled: u64,
    /// The last one that fell into a collection.
    in_gc: u64,
    /// The last one before the last collection that did not.
    before_gc: u64,
    /// GC time since that one.
    gc_since: u64,
}

impl TickMarks {
    /// The tick that the one at `tick` stands for: of one in a collection the tick before that, at which
    /// the thread ran, and which may have no sample yet.
    pub(super) fn meant_by(&self, tick: u64) -> u64 {
        if tick == self.in_gc {
            self.before_gc
        } else {
            tick
        }
    }

    /// Whether the one at `tick` has its sample, or a later one has.
    pub(super) fn are_sampled_to(&self, tick: u64) -> bool {
        tick <= self.sampled
    }

    /// GC time since the one at `tick`.
    pub(super) fn gc_since(&self, tick: u64) -> u64 {
        if self.before_gc == tick {
            self.gc_since
        } else {
            0
        }
    }

    /// The one at `tick` has made a sample.
    pub(super) fn note_sampled(&mut self, tick: u64) {
        self.sampled = tick;
    }

    /// A piece of `work` on garbage has ended, of this `length`; `tick` is the last tick there was.
    pub(super) fn collected(&mut self, work: &GcWork, length: u64, tick: u64) {
        let before = work.tick_before_ns;
        if before != self.in_gc && before != self.before_gc {
            (self.before_gc, self.gc_since) = (before, 0);
        }
        self.gc_since += length;
        if tick > before && tick < work.exit_ns {
            self.in_gc = tick;
        }
    }
}

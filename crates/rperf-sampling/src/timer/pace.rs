//! The intervals in force. The session sets them, with the GVL ([`Budget`](crate::session::budget)
//! says to what); hooks and the timer's signal handler read them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The mean gaps between samples, in ns. They are read at every hand-over of the GVL and
/// change seldom: a cache line of their own stays with all CPUs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pace {
    tick: AtomicU64,
    off_gvl: AtomicU64,
    others: OtherStacks,
}

/// What hooks of other Ractors have taken since it was asked for last. They write to
/// it, so it is away from what all read.
#[derive(Debug, Default)]
#[repr(align(64))]
struct OtherStacks {
    stacks: AtomicU64,
    spent_ns: AtomicU64,
}

impl Pace {
    /// `interval` for everything.
    pub fn new(interval: u64) -> Self {
        Self {
            tick: AtomicU64::new(interval),
            off_gvl: AtomicU64::new(interval),
            others: OtherStacks::default(),
        }
    }

    /// The interval between ticks, and of GC time, in ns.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.tick.load(Relaxed)
    }

    /// The interval of each thread's time off the GVL, in ns.
    #[inline]
    pub fn off_gvl(&self) -> u64 {
        self.off_gvl.load(Relaxed)
    }

    /// Other intervals from now on.
    pub fn set(&self, tick: u64, off_gvl: u64) {
        self.tick.store(tick, Relaxed);
        self.off_gvl.store(off_gvl, Relaxed);
    }

    /// A hook of another Ractor has taken a stack in `spent` ns; `is_off_gvl`: for time off the GVL.
    pub fn note_other(&self, is_off_gvl: bool, spent: u64) {
        self.others.stacks.fetch_add(u64::from(is_off_gvl), Relaxed);
        self.others.spent_ns.fetch_add(spent, Relaxed);
    }

    /// How many stacks off the GVL there were since this was asked last, and the time that all took
    /// in ns.
    pub fn take_others(&self) -> (u64, u64) {
        let others = &self.others;
        if others.spent_ns.load(Relaxed) == 0 {
            return (0, 0);
        }
        let stacks = others.stacks.swap(0, Relaxed);
        (stacks, others.spent_ns.swap(0, Relaxed))
    }
}

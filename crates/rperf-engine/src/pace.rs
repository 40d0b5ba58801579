//! The intervals in force. The session sets them, with the GVL ([`Budget`](crate::budget)
//! says to what); hooks and the timer's signal handler read them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The mean gaps between samples, in ns. They are read at every hand-over of the GVL and
/// change seldom: a cache line of their own stays with all CPUs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Pace {
    tick: AtomicU64,
    off_gvl: AtomicU64,
}

impl Pace {
    /// `interval` for everything.
    pub fn new(interval: u64) -> Self {
        Self {
            tick: AtomicU64::new(interval),
            off_gvl: AtomicU64::new(interval),
        }
    }

    /// Between ticks, and of GC time.
    #[inline]
    pub fn tick(&self) -> u64 {
        self.tick.load(Relaxed)
    }

    /// Of each thread's time off the GVL.
    #[inline]
    pub fn off_gvl(&self) -> u64 {
        self.off_gvl.load(Relaxed)
    }

    /// Other intervals from now on.
    pub fn set(&self, tick: u64, off_gvl: u64) {
        self.tick.store(tick, Relaxed);
        self.off_gvl.store(off_gvl, Relaxed);
    }
}

//! The ticks that were made.

use crate::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};
use crate::timer::calm::Calm;
use std::sync::OnceLock;

/// What ticks leave behind. Only they write it, one at a time, but `at_each`, which is set once; anybody
/// reads it.
#[derive(Debug)]
pub(super) struct MadeTicks {
    /// Time of the last one on the monotonic clock, or 0.
    last_ns: AtomicU64,
    /// How many asked for a sample while some thread ran.
    triggers: AtomicU64,
    /// [`Calm::ticks`].
    calm: AtomicU32,
    /// What each one calls with its time; async-signal-safe.
    at_each: OnceLock<fn(u64)>,
}

impl MadeTicks {
    /// None yet.
    pub(super) fn new() -> Self {
        Self {
            last_ns: AtomicU64::new(0),
            triggers: AtomicU64::new(0),
            calm: AtomicU32::new(Calm::COMPLETE.ticks()),
            at_each: OnceLock::new(),
        }
    }

    /// Has each one call this. Set once.
    pub(super) fn at_each(&self, call: fn(u64)) {
        let _ = self.at_each.set(call);
    }

    /// A tick is made at `now`.
    pub(super) fn begin(&self, now: u64) {
        self.last_ns.store(now, Relaxed);
        if let Some(call) = self.at_each.get() {
            call(now);
        }
    }

    /// Counts a tick that has found somebody.
    pub(super) fn count_trigger(&self) {
        self.triggers.fetch_add(1, Relaxed);
    }

    /// The calm after one more; `was_rest` as in [`Calm::after_tick`].
    pub(super) fn calm_after(&self, was_rest: bool) -> Calm {
        let calm = Calm::of(self.calm.load(Relaxed)).after_tick(was_rest);
        self.calm.store(calm.ticks(), Relaxed);
        calm
    }

    /// Time of the last one on the monotonic clock, or 0.
    #[inline]
    pub(super) fn last_ns(&self) -> u64 {
        self.last_ns.load(Relaxed)
    }

    /// How many asked for a sample while some thread ran.
    pub(super) fn triggers(&self) -> u64 {
        self.triggers.load(Relaxed)
    }
}

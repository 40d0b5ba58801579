//! Probes: sampling callbacks that ticks ask for though they find nobody. A thread can run without an
//! event that says so, and then the callback is what finds it.

use crate::sync::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How long, in ns, a timer that comes to rest asks for no further sampling callback while stacks are
/// captured at ticks: the thread that gets it may be running compiled code. It doubles with each
/// callback, as a tick for nobody wakes the worker, until a callback finds a thread that no event told
/// of.
pub(super) const PROBE_INTERVAL_NS: u64 = 100_000_000;
const MOST_PROBE_INTERVAL_NS: u64 = 800_000_000;

/// When a tick that finds nobody makes a probe. Ticks write it, and a callback that has found
/// somebody.
#[derive(Debug)]
pub(super) struct Probes {
    /// Up to when such a tick asks for no sampling callback.
    pub(super) due_ns: AtomicU64,
    /// How long that is from the next one on.
    pub(super) interval_ns: AtomicU64,
    /// Threads often run without an event that says so: each such tick asks.
    is_always_due: AtomicBool,
}

impl Probes {
    /// The first one is due at once.
    pub(super) fn new() -> Self {
        Self {
            due_ns: AtomicU64::new(0),
            interval_ns: AtomicU64::new(PROBE_INTERVAL_NS),
            is_always_due: AtomicBool::new(false),
        }
    }

    /// Each tick that finds nobody is to make one.
    pub(super) fn make_always_due(&self) {
        self.is_always_due.store(true, Relaxed);
    }

    /// Whether each tick that finds nobody is to make one.
    pub(super) fn are_always_due(&self) -> bool {
        self.is_always_due.load(Relaxed)
    }

    /// Whether the time for the next one has come by `now`.
    #[inline]
    pub(super) fn is_time_for_one(&self, now: u64) -> bool {
        now >= self.due_ns.load(Relaxed)
    }

    /// A probe is made at `now`: the next one has to wait twice as long as this has.
    pub(super) fn note(&self, now: u64) {
        let interval = self.interval_ns.load(Relaxed);
        let next = (2 * interval).min(MOST_PROBE_INTERVAL_NS);
        self.interval_ns.store(next, Relaxed);
        self.due_ns.store(now + interval, Relaxed);
    }

    /// A probe has found a thread: after the next one there is a gap as short as at first.
    pub(super) fn note_found(&self) {
        self.interval_ns.store(PROBE_INTERVAL_NS, Relaxed);
    }
}

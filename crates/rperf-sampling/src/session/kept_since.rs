//! Since when a session has kept what a profile is made of: its start, or the last time that all was
//! taken. With the GVL.

use rperf_vm::clock;

/// The moment at which what is kept begins, by both clocks.
#[derive(Debug)]
pub(super) struct KeptSince {
    /// On the monotonic clock.
    pub(super) start_ns: u64,
    /// In ns since the Unix epoch.
    pub(super) start_realtime_ns: u64,
    /// Expiries of the timer that came before.
    pub(super) triggers_before: u64,
}

impl KeptSince {
    /// From a new session's start on.
    pub(super) fn start(start_ns: u64) -> Self {
        Self {
            start_ns,
            start_realtime_ns: clock::realtime_ns(),
            triggers_before: 0,
        }
    }

    /// What is kept begins at `now`, which may have passed. Expiries don't begin anew.
    pub(super) fn begin(&mut self, now: u64) {
        let since = clock::monotonic_ns().saturating_sub(now);
        self.start_ns = now;
        self.start_realtime_ns = clock::realtime_ns().saturating_sub(since);
    }
}

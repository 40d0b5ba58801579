//! Whether the timer runs, and who may change that: whoever takes it owns its schedule and sets or
//! stops it, one at a time. Only atomics: hooks take it, and the timer's signal handler.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// It is stopped.
const RESTS: u8 = 0;
/// It will expire.
const RUNS: u8 = 1;
/// Somebody owns it: after a tick, to set it, or to stop it.
const TAKEN: u8 = 2;

/// Rests that were ended soon lengthen the time to the next one by so many doublings at most.
const MOST_DOUBLINGS: u32 = 5;

/// The state of a timer, which rests at first.
#[derive(Debug, Default)]
pub struct TimerState {
    state: AtomicU8,
    /// When it was stopped last, and from when on it may be stopped again.
    stopped_ns: AtomicU64,
    may_stop_ns: AtomicU64,
    /// How many rests in a row were ended soon.
    hasty: AtomicU32,
}

impl TimerState {
    /// Ends a rest. Returns whether there was one: then the caller owns the timer.
    #[inline]
    pub fn end_rest(&self) -> bool {
        self.state.load(SeqCst) == RESTS && self.takes(RESTS)
    }

    /// Takes a timer that runs. Returns whether it did: then the caller owns the timer.
    pub fn take(&self) -> bool {
        self.takes(RUNS)
    }

    fn takes(&self, state: u8) -> bool {
        let taken = self.state.compare_exchange(state, TAKEN, SeqCst, SeqCst);
        taken.is_ok()
    }

    /// The owner lets go of a timer that runs.
    pub fn set(&self) {
        self.state.store(RUNS, SeqCst);
    }

    /// The owner lets go of a timer that rests.
    pub fn rest(&self) {
        self.state.store(RESTS, SeqCst);
    }

    /// Whether it rests.
    pub fn rests(&self) -> bool {
        self.state.load(SeqCst) == RESTS
    }

    /// Whether it runs, and was not stopped just before `now`.
    #[inline]
    pub fn may_be_stopped(&self, now: u64) -> bool {
        now >= self.may_stop_ns.load(Relaxed) && self.state.load(Relaxed) == RUNS
    }

    /// The owner stops it at `now`: not again in this interval, nor in a longer one if rests have been
    /// short.
    pub fn note_stop(&self, now: u64, interval: u64) {
        let doublings = self.hasty.load(Relaxed).min(MOST_DOUBLINGS);
        self.stopped_ns.store(now, Relaxed);
        let next = now.saturating_add(interval << doublings);
        self.may_stop_ns.store(next, Relaxed);
    }

    /// A rest ends at `now`: it was short, if it has lasted for less than a quarter of the interval.
    pub fn note_start(&self, now: u64, interval: u64) {
        let rested = now.saturating_sub(self.stopped_ns.load(Relaxed));
        let hasty = match rested < interval / 4 {
            true => self.hasty.load(Relaxed).saturating_add(1),
            false => 0,
        };
        self.hasty.store(hasty, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_owns_it() {
        let timer = TimerState::default();
        assert!(!timer.take(), "it rests");
        assert!(timer.end_rest() && !timer.end_rest() && !timer.take());
        timer.set();
        assert!(!timer.rests() && !timer.end_rest());
        assert!(timer.take() && !timer.take() && !timer.end_rest());
        timer.rest();
        assert!(timer.rests() && timer.end_rest());
    }

    #[test]
    fn it_is_stopped_once_in_an_interval_and_more_seldom_where_rests_are_short() {
        let timer = TimerState::default();
        let start_at = |now| {
            assert!(timer.end_rest());
            timer.note_start(now, 1000);
            timer.set();
        };
        let stop_at = |now| {
            assert!(timer.may_be_stopped(now) && timer.take());
            timer.note_stop(now, 1000);
            timer.rest();
        };
        start_at(100_000);
        stop_at(100_010);
        assert!(!timer.may_be_stopped(200_000), "it rests");
        start_at(100_020);
        assert!(!timer.may_be_stopped(101_009) && timer.may_be_stopped(101_010));
        stop_at(101_010);
        start_at(101_020);
        assert!(!timer.may_be_stopped(102_020), "the rest was short");
        stop_at(103_010);
        start_at(105_000);
        stop_at(107_010);
        start_at(109_000);
        assert!(timer.may_be_stopped(109_000), "rests are long");
    }
}

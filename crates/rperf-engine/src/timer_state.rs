//! Whether the timer runs, and who may change that: whoever takes it owns its schedule and sets or
//! stops it, one at a time. Only atomics: hooks take it, and the timer's signal handler.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// It is stopped.
const RESTS: u8 = 0;
/// It will expire.
const RUNS: u8 = 1;
/// Somebody owns it: after a tick, to set it, or to stop it.
const TAKEN: u8 = 2;

/// So often an interval it may be stopped, in the mean, and in any case once in so many ns: a stop and
/// a start set the timer twice, which in a virtual machine takes some microseconds each.
const STOPS: u64 = 3;
const STOP_NS: u64 = 1_000_000;
/// Stops that may follow each other at once: a request gives the GVL up some times.
const BURST: u64 = 16;
/// A rest that is shorter than this part of the interval is not worth its stop: to wake the worker
/// takes some times as long, but the next tick would seldom fall into such a rest.
const HASTY: u64 = 4;
/// So many such rests may follow each other. Further ones lengthen the time to the next stop, by so
/// many doublings at most.
const HASTY_RESTS: u32 = 8;
const MOST_DOUBLINGS: u32 = 6;

/// The state of a timer, which rests at first.
#[derive(Debug, Default)]
pub struct TimerState {
    state: AtomicU8,
    /// When it was stopped last, and from when on it may be stopped again: a generic cell rate
    /// algorithm (ITU-T I.371).
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

    /// Whether it runs, and was not stopped too often before `now`.
    #[inline]
    pub fn may_be_stopped(&self, now: u64) -> bool {
        now >= self.may_stop_ns.load(Relaxed) && self.state.load(Relaxed) == RUNS
    }

    /// The owner stops it at `now`: that takes a part of what is allowed, and more if rests have been
    /// short.
    pub fn note_stop(&self, now: u64, interval: u64) {
        let hasty = self.hasty.load(Relaxed);
        let doublings = hasty.saturating_sub(HASTY_RESTS).min(MOST_DOUBLINGS);
        self.stopped_ns.store(now, Relaxed);
        let gap = (interval / STOPS).min(STOP_NS);
        let ahead = (BURST - 1) * gap;
        let due = self.may_stop_ns.load(Relaxed).saturating_add(ahead);
        let next = due.max(now).saturating_add(gap << doublings);
        self.may_stop_ns.store(next.saturating_sub(ahead), Relaxed);
    }

    /// A rest ends at `now`: it may have been too short to be worth its stop.
    pub fn note_start(&self, now: u64, interval: u64) {
        let rested = now.saturating_sub(self.stopped_ns.load(Relaxed));
        let hasty = match rested < interval / HASTY {
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

    const INTERVAL: u64 = 1_000_000;

    /// It starts at `now`, and is stopped as often as it may be, after rests of this length. Returns
    /// how often that was until `end`.
    fn stops(timer: &TimerState, mut now: u64, end: u64, rest: u64, interval: u64) -> u64 {
        let mut stops = 0;
        while now < end {
            assert!(timer.end_rest());
            timer.note_start(now, interval);
            timer.set();
            while !timer.may_be_stopped(now) {
                now += 1_000;
            }
            assert!(timer.take());
            timer.note_stop(now, interval);
            timer.rest();
            assert!(!timer.may_be_stopped(now + 10 * interval), "it rests");
            stops += 1;
            now += rest;
        }
        stops
    }

    #[test]
    fn it_is_stopped_some_times_an_interval_and_more_often_after_a_while() {
        let timer = TimerState::default();
        let start = 1_000 * INTERVAL;
        let rest = INTERVAL / HASTY;
        let many = stops(&timer, start, start + 100 * INTERVAL, rest, INTERVAL);
        assert!((300..=320).contains(&many), "{many}");
        let later = start + 200 * INTERVAL;
        let burst = stops(&timer, later, later + 4 * INTERVAL, rest, INTERVAL);
        assert_eq!(burst, 4 * HASTY, "no more than that fit in");
    }

    #[test]
    fn it_may_be_stopped_a_thousand_times_a_second_where_ticks_are_rare() {
        let (timer, interval) = (TimerState::default(), 10 * INTERVAL);
        let start = 1_000 * INTERVAL;
        // A rest that is worth it ends a row of short ones.
        let mut now = start;
        let mut some = 0;
        while now < start + 1_000 * INTERVAL {
            some += stops(&timer, now, now + 8, 1, interval);
            now += interval;
        }
        assert!((799..=801).contains(&some), "{some}");
    }

    #[test]
    fn it_is_stopped_seldom_where_rests_are_short_all_the_time() {
        let timer = TimerState::default();
        let start = 1_000 * INTERVAL;
        let end = start + 1_000 * INTERVAL;
        let hasty = stops(&timer, start, end, INTERVAL / HASTY - 1, INTERVAL);
        assert!((50..=80).contains(&hasty), "{hasty}");
        let later = start + 3_000 * INTERVAL;
        let worth_it = stops(&timer, later, later + 100 * INTERVAL, INTERVAL, INTERVAL);
        assert_eq!(worth_it, 100, "rests are long");
    }
}

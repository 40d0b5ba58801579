//! Whether the timer runs, and who may change that: whoever takes it owns its schedule and sets or
//! stops it, one at a time. Only atomics: hooks take it, and the timer's signal handler.

use crate::sync::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use crate::timer::idle_times::IdleTimes;

/// The timer is stopped.
const RESTS: u8 = 0;
/// The timer will expire.
const RUNS: u8 = 1;
/// Somebody owns it: after a tick, to set it, or to stop it.
const TAKEN: u8 = 2;

/// So often an interval it may be stopped, in the mean, and in any case once in so many ns: a stop and
/// a start set the timer twice, which in a virtual machine takes some microseconds each.
const STOPS: u64 = 3;
const STOP_NS: u64 = 1_000_000;
/// Stops that may follow each other at once: a request gives the GVL up some times.
const BURST: u64 = 16;
/// So many questions whether a stop is worth it count as one stop.
const QUESTIONS: u64 = 8;

/// The state of a timer, which rests at first.
#[derive(Debug, Default)]
pub struct TimerState {
    state: AtomicU8,
    /// From when on it may be stopped again: a generic cell rate algorithm (ITU-T I.371).
    may_stop_ns: AtomicU64,
    idle_times: IdleTimes,
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

    /// Begins an idle time at `now`, as a thread gives the GVL up at this `place`, and returns whether a
    /// stop is expected to be worth it. The question takes a part of what is allowed. With the GVL.
    pub fn ask_for_stop(&self, place: usize, now: u64) -> bool {
        self.take_allowance(1, now);
        self.idle_times.begin(place, now)
    }

    /// Hooks may never stop the timer.
    pub fn never_stop(&self) {
        self.may_stop_ns.store(u64::MAX, Relaxed);
    }

    /// Hooks may stop it.
    #[cfg(test)]
    pub fn allow_stops(&self) {
        self.may_stop_ns.store(0, Relaxed);
    }

    /// A thread has the GVL at `now`.
    #[inline]
    pub fn end_idle_time(&self, now: u64) {
        self.idle_times.end(now);
    }

    /// The owner stops it at `now`: that takes a part of what is allowed.
    pub fn note_stop(&self, now: u64) {
        self.take_allowance(QUESTIONS - 1, now);
    }

    fn take_allowance(&self, questions: u64, now: u64) {
        let interval = u64::from(self.idle_times.interval());
        let question = (interval / STOPS).min(STOP_NS) / QUESTIONS;
        let ahead = (BURST * QUESTIONS - 1) * question;
        let due = self.may_stop_ns.load(Relaxed).saturating_add(ahead);
        let next = due.max(now).saturating_add(questions * question);
        self.may_stop_ns.store(next.saturating_sub(ahead), Relaxed);
    }

    /// The owner starts it; ticks come at this `interval`, in ns.
    pub fn note_start(&self, interval: u64) {
        self.idle_times.set_interval(interval);
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

    /// Starts the timer at `now`, and asks and stops it as often as is allowed, after idle times of this
    /// length. Returns how often that was until `end`: questions, and stops.
    fn stops(timer: &TimerState, mut now: u64, end: u64, idle: u64, interval: u64) -> (u64, u64) {
        let (mut questions, mut stops) = (0, 0);
        while now < end {
            if timer.end_rest() {
                timer.note_start(interval);
                timer.set();
            }
            while !timer.may_be_stopped(now) {
                now += 1_000;
            }
            questions += 1;
            if timer.ask_for_stop(8, now) {
                assert!(timer.take());
                timer.note_stop(now);
                timer.rest();
                assert!(!timer.may_be_stopped(now + 10 * interval), "it rests");
                stops += 1;
            }
            now += idle;
            timer.end_idle_time(now);
        }
        (questions, stops)
    }

    #[test]
    fn it_is_stopped_some_times_an_interval_and_more_often_after_a_while() {
        let timer = TimerState::default();
        let start = 1_000 * INTERVAL;
        let idle = INTERVAL / 4;
        let (questions, many) = stops(&timer, start, start + 100 * INTERVAL, idle, INTERVAL);
        assert!((300..=320).contains(&many), "{many}");
        assert_eq!(questions, many);
        let later = start + 200 * INTERVAL;
        let (_, burst) = stops(&timer, later, later + 4 * INTERVAL, idle, INTERVAL);
        assert_eq!(burst, 16, "no more than that fit in");
    }

    #[test]
    fn it_may_be_stopped_a_thousand_times_a_second_where_ticks_are_rare() {
        let (timer, interval) = (TimerState::default(), 10 * INTERVAL);
        let start = 1_000 * INTERVAL;
        let end = start + 1_000 * INTERVAL;
        let (_, some) = stops(&timer, start, end, interval / 4, interval);
        assert_eq!(some, 400, "all of them");
        let (timer, idle) = (TimerState::default(), interval / 100);
        // Nothing is learned, so all are worth it.
        let mut now = start;
        let mut some = 0;
        for place in 0.. {
            while !timer.may_be_stopped(now) {
                if timer.end_rest() {
                    timer.note_start(interval);
                    timer.set();
                }
                now += 1_000;
            }
            if now >= end {
                break;
            }
            if timer.ask_for_stop(place * 8, now) {
                assert!(timer.take());
                timer.note_stop(now);
                timer.rest();
                some += 1;
            }
            now += idle;
        }
        assert!((900..=1_017).contains(&some), "{some}");
    }

    #[test]
    fn it_is_not_stopped_for_a_moment_and_not_even_asked_each_time() {
        let timer = TimerState::default();
        let start = 1_000 * INTERVAL;
        let end = start + 1_000 * INTERVAL;
        let (questions, hasty) = stops(&timer, start, end, 1_000, INTERVAL);
        assert_eq!(hasty, 1, "nothing was known");
        assert!((24_000..25_000).contains(&questions), "{questions}");
        let later = start + 3_000 * INTERVAL;
        let (_, worth_it) = stops(&timer, later, later + 100 * INTERVAL, INTERVAL, INTERVAL);
        assert!(worth_it >= 95, "idle times are long: {worth_it}");
    }
}

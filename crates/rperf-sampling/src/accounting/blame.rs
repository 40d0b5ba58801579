//! Blame: for how long others waited for the GVL while a thread had it. That of running time is pending
//! until a tick finds somebody waiting, that of collections goes with their samples.

use super::Accounting;
use super::axes::ByState;
use super::sample_point::SamplePoint;
use crate::threads::Waits;
use rperf_model::State;
use rperf_vm::GcWork;
use std::mem::take;

/// That of one thread.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// Up to which sum of all waits it is accounted; `None` while the thread hasn't the GVL, or it
    /// isn't known.
    up_to: Option<u64>,
    /// How many waited when the last tick came.
    waiting: u32,
    /// What no sample has taken.
    pending: ByState<u64>,
    /// The point of the last sample of running time that took some: takes the remainder.
    pub(super) last_point: Option<SamplePoint>,
}

impl Blame {
    fn advance(&mut self, state: State, ns: u64) {
        let before = *self.up_to.get_or_insert(ns);
        // What is read up to a tick can be less than what was read in an event after it.
        let passed = ns.wrapping_sub(before).cast_signed().max(0);
        self.up_to = Some(before.wrapping_add_signed(passed));
        self.pending[state as usize] += passed.unsigned_abs();
    }

    /// What no sample in `state` has taken.
    pub(super) fn take(&mut self, state: State) -> u64 {
        take(&mut self.pending[state as usize])
    }

    /// What a sample of running time takes, which stands for `wall_ns`. In the mean over all ticks
    /// the time of a stack times the number of those who wait is its blame; so a tick at which
    /// nobody waits takes none, however much is pending from others, and what is left for want of
    /// luck goes to the next ones.
    pub(super) fn take_sampled(&mut self, wall_ns: u64) -> u64 {
        let pending = &mut self.pending[State::Running as usize];
        if self.waiting == 0 {
            return 0;
        }
        let fair = wall_ns.saturating_mul(self.waiting.into());
        let taken = fair.max(*pending / 2).min(*pending);
        *pending -= taken;
        taken
    }

    /// The thread has no GVL any more, or it isn't known.
    #[inline]
    pub(super) fn end(&mut self) {
        self.up_to = None;
    }
}

impl Accounting {
    /// The thread has got the GVL: what others wait from here on is its blame.
    pub fn begin_blame(&mut self, waits: Waits) {
        self.blame.up_to = Some(waits.ns);
    }

    /// The blame of the running thread is accounted up to here.
    pub fn blame_running(&mut self, waits: Waits) {
        self.blame.advance(State::Running, waits.ns);
    }

    /// Up to which sum of all waits blame is accounted; `None` if the thread hasn't the GVL, or it isn't
    /// known.
    pub fn blamed_up_to(&self) -> Option<u64> {
        self.blame.up_to
    }

    /// A tick has come, for which a sample may be made next: the waits up to it, and who waits.
    /// `None` if that isn't known.
    pub fn blame_at_tick(&mut self, waits: Option<Waits>) {
        self.blame.waiting = waits.map_or(0, |waits| waits.threads);
        if let Some(waits) = waits {
            self.blame_running(waits);
        }
    }

    /// A piece of garbage collection has ended, with the waits `before` and after it. Its marking has
    /// its share by its time. Called before [`Accounting::collected`].
    pub fn blame_collection(&mut self, before: Waits, after: Waits, work: &GcWork) {
        self.blame_running(before);
        let length = work.exit_ns.saturating_sub(work.enter_ns).max(1);
        let passed = after.ns.wrapping_sub(before.ns).cast_signed().max(0);
        let marking = u128::from(work.marking.wall_ns.min(length));
        let marking = marking * u128::from(passed.unsigned_abs()) / u128::from(length);
        let marked = before.ns.wrapping_add(marking as u64);
        self.blame.advance(State::GcMarking, marked);
        self.blame.advance(State::GcSweeping, after.ns);
    }
}

//! Blame: for how long others waited for the GVL while a thread had it. That of running time is pending
//! until a tick finds somebody waiting, that of collections goes with their samples.

use super::by_state::ByState;
use rperf_model::State;
use std::mem::take;

/// The blame of one thread.
#[derive(Debug, Default)]
pub(super) struct Blame {
    /// Up to which sum of all waits it is accounted; `None` while the thread hasn't the GVL, or it
    /// isn't known.
    up_to: Option<u64>,
    /// How many waited when the last tick came.
    waiting: u32,
    /// What no sample has taken.
    pending: ByState<u64>,
}

impl Blame {
    /// The thread has got the GVL, with so many ns of all waits before.
    pub(super) fn begin(&mut self, ns: u64) {
        self.up_to = Some(ns);
    }

    /// Up to which sum of all waits it is accounted.
    pub(super) fn up_to(&self) -> Option<u64> {
        self.up_to
    }

    /// A tick has come while so many waited.
    pub(super) fn tick(&mut self, waiting: u32) {
        self.waiting = waiting;
    }

    /// Waits up to the sum `ns` have passed in `state`.
    pub(super) fn advance(&mut self, state: State, ns: u64) {
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

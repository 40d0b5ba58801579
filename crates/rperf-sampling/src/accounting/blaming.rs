//! The events that move a thread's blame: it gets the GVL, a tick comes, it collects garbage.

use super::Accounting;
use rperf_model::State;
use rperf_vm::GcWork;
use rperf_vm::Waits;

impl Accounting {
    /// The thread has got the GVL: what others wait beyond this sum of all waits is its blame.
    pub fn begin_blame(&mut self, ns: u64) {
        self.blame.begin(ns);
    }

    /// The blame of the running thread is accounted up to here.
    pub fn blame_running(&mut self, waits: Waits) {
        self.blame.advance(State::Running, waits.ns);
    }

    /// Up to which sum of all waits blame is accounted; `None` if the thread hasn't the GVL, or it isn't
    /// known.
    pub fn blamed_up_to(&self) -> Option<u64> {
        self.blame.up_to()
    }

    /// A tick has come, for which a sample may be made next: the waits up to it, and who waits.
    /// `None` if that isn't known.
    pub fn blame_at_tick(&mut self, waits: Option<Waits>) {
        self.blame.tick(waits.map_or(0, |waits| waits.threads));
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

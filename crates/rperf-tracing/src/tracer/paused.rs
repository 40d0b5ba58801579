//! Pauses of a traced session: no call and no time counts in them. The VM goes on to tell of threads
//! and switches of fibers, so that it is known which stacks are still those of before: a fiber that has
//! run in a pause has none, and its stack is taken anew. Under the GVL, outside of hooks but for what
//! is told meanwhile.

use crate::clock::cpu_times::CpuClock;
use crate::tracer::{ThreadNumber, Tracer};
use rperf_model::State;

impl Tracer {
    /// Nothing counts from `now` on.
    pub fn pause(&mut self, now: u64) {
        if self.pauses.since.is_some() {
            return;
        }
        self.charge(now);
        self.end_cpu_window(State::Running);
        if let Some(CpuClock { since, .. }) = &mut self.cpu {
            *since = None;
        }
        self.pauses.since = Some(self.last);
        self.runs_in_pause();
    }

    /// All counts again from `now` on. `ready` says of the threads that are alive since when they
    /// have been ready to run, 0 if they aren't. Those without a stack need one before they go on.
    pub fn resume(&mut self, now: u64, ready: impl Fn(ThreadNumber) -> Option<u64>) {
        // Up to the pause.
        self.flush(now, &ready);
        self.pauses.ticks = self.pauses.ticks_until(&self.start, now);
        if self.pauses.since.take().is_none() {
            return;
        }
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let is_away = number != self.thread && ready(ThreadNumber(number as u32)).is_some();
            thread.away_since = is_away.then_some(now);
            thread.away_cpu_ns = None;
        }
        self.last = self.last.max(now);
    }

    /// Whether the stack of a thread isn't known: it has run in a pause.
    pub fn lacks_stack(&self, thread: ThreadNumber) -> bool {
        let thread = self.threads.get(thread.0 as usize);
        let fiber = thread.and_then(|thread| self.fibers.get(thread.fiber));
        fiber.is_none_or(|fiber| fiber.stack.is_empty())
    }

    /// The fiber that runs goes on in a pause: what we know of its stack soon isn't true.
    pub(crate) fn runs_in_pause(&mut self) {
        if let Some(fiber) = self.fibers.get_mut(self.fiber) {
            fiber.clear();
        }
        if let Some(calls) = &mut self.timed_calls
            && let Some(since) = self.pauses.since
        {
            calls.pause_fiber(self.fiber, since);
        }
    }

    /// Charges the time up to now, as [`Tracer::charge`] does, unless nothing counts.
    #[inline]
    pub(crate) fn charge_unless_paused(&mut self, now: u64) {
        if self.pauses.since.is_none() {
            self.charge(now);
        }
    }
}

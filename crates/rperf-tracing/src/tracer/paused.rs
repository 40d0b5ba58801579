//! Pauses of a traced session: no call and no time counts in them. The VM goes on to tell of threads
//! and switches of fibers, so that it is known which stacks are still those of before: a fiber that has
//! run in a pause has none, and its stack is taken anew. Under the GVL, outside of hooks but for what
//! is told meanwhile.

use crate::tracer::Tracer;
use crate::tree::threads::ThreadNumber;
use rperf_model::State;

impl Tracer {
    /// Nothing counts from `now` on.
    pub fn pause(&mut self, now: u64) {
        if self.time.is_paused() {
            return;
        }
        self.charge(now);
        self.end_cpu_window(State::Running);
        self.cpu.leave_window();
        self.time.pause();
        self.runs_in_pause();
    }

    /// All counts again from `now` on. `ready` says of the threads that are alive since when they
    /// have been ready to run, 0 if they aren't. Those without a stack need one before they go on.
    pub fn resume(&mut self, now: u64, ready: impl Fn(ThreadNumber) -> Option<u64>) {
        // Up to the pause.
        self.flush(now, &ready);
        if !self.time.resume(now) {
            return;
        }
        let running = self.threads.running_number();
        for (number, thread) in self.threads.numbered_mut() {
            let is_away = number != running && ready(number).is_some();
            thread.away_since = is_away.then_some(now);
            thread.away_cpu_ns = None;
        }
        self.time.come_to(now);
    }

    /// Whether the stack of a thread isn't known: it has run in a pause.
    pub fn lacks_stack(&self, thread: ThreadNumber) -> bool {
        let thread = self.threads.get(thread);
        let fiber = thread.and_then(|thread| self.fibers.get(thread.fiber));
        fiber.is_none_or(|fiber| fiber.stack.is_empty())
    }

    /// The fiber that runs goes on in a pause: what we know of its stack soon isn't true.
    pub(crate) fn runs_in_pause(&mut self) {
        if let Some(fiber) = self.fibers.get_running_mut() {
            fiber.clear();
        }
        if let Some(calls) = &mut self.timed_calls
            && let Some(since) = self.time.paused_since()
        {
            calls.pause_fiber(self.fibers.running_number(), since);
        }
    }

    /// Charges the time up to now, as [`Tracer::charge`] does, unless nothing counts.
    #[inline]
    pub(crate) fn charge_unless_paused(&mut self, now: u64) {
        if !self.time.is_paused() {
            self.charge(now);
        }
    }
}

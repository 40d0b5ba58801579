//! When [`Tracer`] reads the CPU clock, and whose the time is. At events, under the GVL, on the
//! thread that they are of.

use crate::clock::cpu_times::{CpuClock, LONG_GAP};
use crate::fiber::Fiber;
use crate::tracer::{ThreadNumber, Tracer};
use crate::tree::ROOT;
use rperf_model::State;
use rperf_vm::GcMoment;
use std::cell::Cell;

thread_local! {
    /// The thread that last ran on this native thread. Constant and without a destructor, so that
    /// access never allocates.
    static LAST_RUN: Cell<Option<ThreadNumber>> = const { Cell::new(None) };
}

impl Tracer {
    /// From now on CPU time is measured, by this clock of the calling thread.
    pub fn measure_cpu(&mut self, read: fn() -> GcMoment) {
        self.long_gap = LONG_GAP;
        self.cpu = Some(CpuClock { read, since: None });
    }

    /// The calling thread has run since the last reading, longest at the innermost frame just now,
    /// or has been in this `state`.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_cpu_window(&mut self, state: State) {
        let Some(clock) = &mut self.cpu else {
            return;
        };
        let now = (clock.read)();
        let since = clock.since.replace(now);
        let top = self.fibers.get(self.fiber).and_then(Fiber::top);
        let node = top.map_or(ROOT, |top| top.charge);
        let (Some(since), Some(thread)) = (since, self.threads.get_mut(self.thread)) else {
            return;
        };
        let passed = now.monotonic_ns.saturating_sub(since.monotonic_ns);
        let used = now.cpu_ns.saturating_sub(since.cpu_ns);
        match state {
            State::Running if passed > used => {
                *thread.sums.stolen.entry(node).or_default() += passed - used;
            }
            State::Running => {}
            _ => thread.sums.used.add(node, state, used.min(passed)),
        }
    }

    /// The running thread gives the GVL up.
    pub(crate) fn leave_cpu(&mut self) {
        self.end_cpu_window(State::Running);
        if let Some(CpuClock { since, .. }) = &mut self.cpu
            && let Some(since) = since.take()
            && let Some(thread) = self.threads.get_mut(self.thread)
        {
            thread.away_cpu_ns = Some(since.cpu_ns);
        }
    }

    /// The running thread, `thread`, has got the GVL. What C code used without it is known if no
    /// other thread ran on this native thread meanwhile.
    pub(crate) fn enter_cpu(&mut self, thread: ThreadNumber) {
        let Some(clock) = &mut self.cpu else {
            return;
        };
        let now = (clock.read)();
        clock.since = Some(now);
        let Some(state) = self.threads.get_mut(thread.0 as usize) else {
            return;
        };
        let ran_here = LAST_RUN.replace(Some(thread)) == Some(thread);
        if let Some(since) = state.away_cpu_ns.take()
            && ran_here
        {
            let top = self.fibers[state.fiber].top();
            let node = top.map_or(ROOT, |top| top.charge);
            let used = now.cpu_ns.saturating_sub(since);
            state.sums.used.add(node, State::GvlBlocked, used);
        }
    }
}

//! When [`Tracer`] reads the CPU clock, and whose the time is. At events, under the GVL, on the
//! thread that they are of.

use crate::clock::cpu_times::CpuWindow;
use crate::tracer::Tracer;
use crate::tree::threads::ThreadNumber;
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
        self.cpu.measure(read);
    }

    /// The calling thread has run since the last reading, longest at the innermost frame just now,
    /// or has been in this `state`.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_cpu_window(&mut self, state: State) {
        let Some(CpuWindow { passed, used }) = self.cpu.next_window() else {
            return;
        };
        let node = self.fibers.charged();
        let Some(thread) = self.threads.get_running_mut() else {
            return;
        };
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
        if let Some(since) = self.cpu.leave_window()
            && let Some(thread) = self.threads.get_running_mut()
        {
            thread.away_cpu_ns = Some(since.cpu_ns);
        }
    }

    /// The running thread, `thread`, has got the GVL. What C code used without it is known if no
    /// other thread ran on this native thread meanwhile.
    pub(crate) fn enter_cpu(&mut self, thread: ThreadNumber) {
        let Some(now) = self.cpu.begin_window() else {
            return;
        };
        let Some(state) = self.threads.get_mut(thread) else {
            return;
        };
        let ran_here = LAST_RUN.replace(Some(thread)) == Some(thread);
        if let Some(since) = state.away_cpu_ns.take()
            && ran_here
        {
            let node = self.fibers[state.fiber].charged();
            let used = now.cpu_ns.saturating_sub(since);
            state.sums.used.add(node, State::GvlBlocked, used);
        }
    }
}

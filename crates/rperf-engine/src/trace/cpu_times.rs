//! CPU time of frames, without a reading of the CPU clock at each event. A thread that holds the GVL
//! and runs uses CPU time as fast as time passes, but for what the system takes away: it gives the
//! CPU to another process for a while. Such a while is a long gap between two events. So the CPU
//! clock is read after long gaps only, and what is missing since the last reading was taken from
//! the frame of that gap. Under the GVL, at events, on the thread that they are of.

use super::fiber::Fiber;
use super::state_times::StateTimes;
use super::tracer::{ThreadNumber, Tracer};
use super::tree::ROOT;
use crate::gc_progress::GcMoment;
use rperf_model::State;
use rustc_hash::FxHashMap;
use std::cell::Cell;

/// A gap is long from so many ticks on: 20 to 100 us, by any clock that is read.
const LONG_GAP: u64 = 100_000;

/// The gap that no gap is longer than: the clock is never read.
pub(super) const NO_GAP: u64 = u64::MAX;

thread_local! {
    /// The thread that last ran on this native thread. Constant and without a destructor, so that
    /// access never allocates.
    static LAST_RUN: Cell<Option<ThreadNumber>> = const { Cell::new(None) };
}

/// The running thread's window: since the CPU clock was read last.
#[derive(Debug)]
pub(super) struct CpuClock {
    read: fn() -> GcMoment,
    since: Option<GcMoment>,
}

/// What is kept for a thread, in ns.
#[derive(Debug, Default)]
pub(super) struct ThreadCpu {
    /// By node: running time that the system took away.
    pub(super) stolen: FxHashMap<u32, u64>,
    /// CPU time in other states than running.
    pub(super) used: StateTimes,
    /// Its CPU clock as it gave the GVL up.
    away: Option<u64>,
}

impl ThreadCpu {
    /// Lets go of what has been measured.
    pub(super) fn clear(&mut self) {
        self.stolen.clear();
        self.used = StateTimes::default();
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.stolen.capacity() * (size_of::<(u32, u64)>() + 1) + self.used.memory()
    }
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
    pub(super) fn end_cpu_window(&mut self, state: State) {
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
                *thread.cpu.stolen.entry(node).or_default() += passed - used;
            }
            State::Running => {}
            _ => thread.cpu.used.add(node, state, used.min(passed)),
        }
    }

    /// The running thread gives the GVL up.
    pub(super) fn leave_cpu(&mut self) {
        self.end_cpu_window(State::Running);
        if let Some(CpuClock { since, .. }) = &mut self.cpu
            && let Some(since) = since.take()
            && let Some(thread) = self.threads.get_mut(self.thread)
        {
            thread.cpu.away = Some(since.cpu_ns);
        }
    }

    /// The running thread, `thread`, has got the GVL. What C code used without it is known if no
    /// other thread ran on this native thread meanwhile.
    pub(super) fn enter_cpu(&mut self, thread: ThreadNumber) {
        let Some(clock) = &mut self.cpu else {
            return;
        };
        let now = (clock.read)();
        clock.since = Some(now);
        let Some(state) = self.threads.get_mut(thread.0 as usize) else {
            return;
        };
        let ran_here = LAST_RUN.replace(Some(thread)) == Some(thread);
        if let Some(since) = state.cpu.away.take()
            && ran_here
        {
            let top = self.fibers[state.fiber].top();
            let node = top.map_or(ROOT, |top| top.charge);
            let used = now.cpu_ns.saturating_sub(since);
            state.cpu.used.add(node, State::GvlBlocked, used);
        }
    }
}

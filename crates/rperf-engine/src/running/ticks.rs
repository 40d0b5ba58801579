//! Ticks: the stack that the signal handler takes, the samples made of what it has taken, and
//! the sampling callback. The handler's part runs in it; the rest on Ruby threads, with the GVL.

use super::RunningSession;
use super::stacks::{self, Whose};
use crate::accounting::Accounting;
use crate::clock;
use crate::counters::CaptureCounters;
use crate::threads::{GvlPart, ThreadState};
use crate::tick_capture::Registers;
use crate::tick_capture::at_work::AtWork;
use crate::vm::{Vm, VmFrames};
use std::sync::atomic::Ordering::Relaxed;

impl RunningSession {
    /// The handler: takes the stack of the calling thread. As
    /// [`TickCapture::take`](crate::TickCapture::take).
    ///
    /// # Safety
    /// As there.
    pub unsafe fn take_stack(
        &self,
        vm: &impl VmFrames,
        seq: u32,
        tick_ns: u64,
        registers: &Registers,
    ) -> bool {
        // SAFETY: by this function's contract.
        unsafe { self.tick_capture.take(vm, seq, tick_ns, registers) }
    }

    /// Makes samples of what the log has, all of it from the calling thread, whose part this
    /// is and whose fiber has had the labels that are noted there. Whatever ends a slice of
    /// its running time, or changes its labels, comes after this.
    #[inline]
    pub(super) fn drain(&self, vm: &impl Vm, part: &mut GvlPart, guard: &AtWork<'_>) {
        if !self.tick_capture.is_empty(guard) {
            self.drain_log(vm, part, guard);
        }
    }

    /// Makes samples of what the log has of `thread`, the calling one.
    pub fn drain_ticks(&self, vm: &impl Vm, thread: &ThreadState, guard: &AtWork<'_>) {
        if let Some(mut part) = thread.gvl_part(vm.gvl()) {
            self.drain(vm, &mut part, guard);
        }
    }

    #[cold]
    fn drain_log(&self, vm: &impl Vm, part: &mut GvlPart, guard: &AtWork<'_>) {
        let Some(mut state) = self.state(vm.gvl()) else {
            return;
        };
        let engine = &mut state.engine;
        let thread = part.accounting.as_ref().map(Accounting::seq);
        let drained = self.tick_capture.drain(guard, thread, |log| {
            let labels = part.fiber_labels.as_ref();
            let Some(accounting) = &mut part.accounting else {
                return 0;
            };
            let replayed = engine.replay(log, accounting, &mut part.last_stack, labels);
            // SAFETY: the log has kept them alive.
            unsafe { vm.keep_alive(replayed.new_frames) };
            replayed.ticks
        });
        if let Some(drained) = drained {
            engine.count_sampling(drained.counters.tick_stacks, drained.spent_ns);
            engine.count_capture(drained.counters);
            // Its end makes objects, which is for the sampling callback.
            if engine.is_epoch_over(drained.now_ns) {
                self.ticks.trigger();
            }
        }
    }

    /// Lets go of the frames that were learned at safepoints.
    pub fn forget_learned(&self, guard: &AtWork<'_>) {
        self.tick_capture.forget_learned(guard);
    }

    /// The sampling callback, on `thread`. Returns whether the epoch is over.
    pub fn sample(&self, vm: &impl Vm, thread: &ThreadState) -> bool {
        let guard = AtWork::begin(vm.gvl());
        let now = clock::monotonic_ns();
        self.ticks.at_safepoint();
        let Some(mut part) = thread.gvl_part(vm.gvl()) else {
            return false;
        };
        self.drain(vm, &mut part, &guard);
        let begin = |accounting: &mut Accounting| accounting.begin_running(now);
        if self.enter(vm, thread, &mut part, begin).is_none() {
            return false;
        }
        let counters = self.sample_running(vm, thread, &mut part, now, &guard);
        drop(part);
        self.merge_ended_batch(vm.gvl(), now);
        let Some(mut state) = self.state(vm.gvl()) else {
            return false;
        };
        let engine = &mut state.engine;
        let is_epoch_over = engine.is_epoch_over(now);
        engine.count_capture(counters);
        let spent = clock::monotonic_ns().saturating_sub(now);
        engine.count_sampling(counters.safepoint_stacks, spent);
        if is_epoch_over {
            self.forget_learned(&guard);
        }
        is_epoch_over
    }

    /// Samples `thread`, the calling one, whose part has an accounting.
    fn sample_running(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        part: &mut GvlPart,
        now: u64,
        guard: &AtWork<'_>,
    ) -> CaptureCounters {
        let mut counters = CaptureCounters {
            safepoint_calls: 1,
            ..CaptureCounters::default()
        };
        let Some(accounting) = &mut part.accounting else {
            return counters;
        };
        let tick = self.ticks.last_tick();
        let learned = self.tick_capture.learn(vm, accounting.seq(), guard);
        counters.hidden_frames = u64::from(learned.is_some_and(|(_, is_new)| is_new));
        let whose = match learned {
            // The tick's stack, as far as it is there still.
            Some((frames, _)) => Whose::CurrentUpTo(frames),
            None => Whose::Current,
        };
        let ready = thread.ready_ns.load(Relaxed);
        // Else what is due is of the time before the tick.
        let was_running = accounting.is_running();
        let dues = accounting.sample(now, tick, ready, clock::thread_cpu_ns);
        counters.safepoint_stacks = u64::from(was_running && !dues.is_empty());
        if !dues.is_empty()
            && let Some(mut state) = self.state(vm.gvl())
        {
            let recorded = (accounting, &mut part.last_stack);
            let tables = state.tables();
            stacks::record(vm, self, tables, (thread, whose), (now, dues), recorded);
        }
        counters
    }
}

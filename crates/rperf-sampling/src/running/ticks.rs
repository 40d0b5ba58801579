//! Ticks: the samples made of what the signal handler has taken, and the sampling callback. On Ruby
//! threads, with the GVL.

use super::RunningSession;
use super::due::{FollowUp, Wanted};
use crate::accounting::Accounting;
use crate::counters::{CaptureCounters, StackCounts};
use crate::recording::NotedLabels;
use crate::threads::{GvlPart, ThreadState};
use crate::tick_capture::at_work::AtWork;
use rperf_vm::{Gvl, VmFrames, clock};
use std::sync::atomic::Ordering::Relaxed;

/// What was learned at a safepoint about the stack that the handler couldn't take.
#[derive(Debug, Clone, Copy)]
pub struct Learned {
    /// How many frames of the stack, from the root, were there at the tick.
    frames: usize,
    /// The frame that was missed has been found.
    is_found: bool,
}

impl RunningSession {
    /// Makes samples of what the log has, all of it from the calling thread, whose part this
    /// is. Whatever ends a slice of its running time, or changes its labels, comes after this.
    /// Returns whether there may be new frames.
    #[inline]
    pub(super) fn drain(&self, gvl: &Gvl<'_>, part: &mut GvlPart, guard: &AtWork<'_>) -> bool {
        !self.stacks.at_ticks.is_empty(guard) && self.drain_log(gvl, part, guard, None)
    }

    /// Makes samples of what the log has of `thread`, the calling one.
    pub fn drain_ticks<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        thread: &ThreadState,
        guard: &AtWork<'_>,
    ) -> FollowUp<'a> {
        let part = thread.gvl_part(gvl);
        let has_drained = part.is_some_and(|mut part| self.drain(gvl, &mut part, guard));
        self.after_drain(gvl, has_drained)
    }

    /// `thread`, the calling one, is in another fiber now, which has these labels.
    /// What ran before ran with the labels that are noted; but a tick can have come
    /// between the switch and this.
    pub fn fiber_switched<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        thread: &ThreadState,
        guard: &AtWork<'_>,
        labels: NotedLabels<'_>,
    ) -> FollowUp<'a> {
        let Some(mut part) = thread.gvl_part(gvl) else {
            return FollowUp::None;
        };
        let has_drained = !self.stacks.at_ticks.is_empty(guard)
            && self.is_counting()
            && self.drain_log(gvl, &mut part, guard, Some(labels));
        thread.note_labels(&mut part, labels);
        self.after_drain(gvl, has_drained)
    }

    #[cold]
    fn drain_log(
        &self,
        gvl: &Gvl<'_>,
        part: &mut GvlPart,
        guard: &AtWork<'_>,
        present: Option<NotedLabels<'_>>,
    ) -> bool {
        let Some(mut state) = self.state(gvl) else {
            return false;
        };
        let engine = &mut state.engine;
        let thread = part.accounting.as_ref().map(Accounting::seq);
        let drained = self.stacks.at_ticks.drain(guard, thread, |log| {
            let noted = part.fiber_labels.noted();
            let labels = [noted, present.unwrap_or(noted)];
            part.accounting.as_mut().map_or(0, |accounting| {
                engine.replay(log, accounting, &mut part.last_stack, &labels)
            })
        });
        if let Some(drained) = drained {
            let stacks = StackCounts::running(drained.counters.tick_stacks);
            engine.count_sampling(drained.now_ns, stacks, drained.spent_ns);
            engine.count_capture(drained.counters);
            // Its end makes objects, which is for the sampling callback.
            if engine.is_ending() || engine.is_epoch_over(drained.now_ns) {
                self.ticks.trigger();
            }
        }
        drained.is_some()
    }

    /// Lets go of the frames that were learned at safepoints.
    pub fn forget_learned(&self, guard: &AtWork<'_>) {
        self.stacks.at_ticks.forget_learned(guard);
    }

    /// Before [`RunningSession::sample`]: learns the frame that the VM has left out of the stack
    /// of `thread` at a tick, if there is one to be learned.
    pub fn learn(
        &self,
        vm: &impl VmFrames,
        gvl: &Gvl<'_>,
        thread: &ThreadState,
    ) -> Option<Learned> {
        let seq = thread.gvl_part(gvl)?.accounting.as_ref()?.seq();
        let (frames, is_found) = self.stacks.at_ticks.learn(vm, seq, &AtWork::begin(gvl))?;
        Some(Learned { frames, is_found })
    }

    /// The sampling callback, on `thread`.
    pub fn sample<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        thread: &'a ThreadState,
        learned: Option<Learned>,
    ) -> FollowUp<'a> {
        let guard = AtWork::begin(gvl);
        let now = clock::monotonic_ns();
        self.ticks.at_safepoint();
        self.merge_ended_batch(gvl, now);
        let Some(mut part) = thread.gvl_part(gvl) else {
            return FollowUp::None;
        };
        let has_drained = self.drain(gvl, &mut part, &guard);
        let begin = |accounting: &mut Accounting| accounting.begin_running(now);
        let accounting = part.accounting.as_ref();
        let is_blamed = accounting.is_some_and(|it| it.is_running() && it.blamed_up_to().is_some());
        let was_counted = !is_blamed && self.waits.leave(thread.thread, now);
        let Some(accounting) = self.enter(gvl, thread, &mut part, begin) else {
            return self.after_drain(gvl, has_drained);
        };
        let ready = thread.ready_ns.load(Relaxed);
        // Else what is due is of the time before the tick.
        let was_running = accounting.is_running();
        let tick = self.ticks.last_tick();
        if is_blamed {
            accounting.blame_at_tick(self.waits.up_to(tick));
        } else {
            self.end_wait(gvl, was_counted, accounting, ready, now);
        }
        let dues = accounting.sample(now, tick, ready, clock::thread_cpu_ns);
        let counters = CaptureCounters {
            safepoint_calls: 1,
            safepoint_stacks: u64::from(was_running && !dues.is_empty()),
            hidden_frames: u64::from(learned.is_some_and(|it| it.is_found)),
            ..CaptureCounters::default()
        };
        self.count_callback(gvl, counters, now);
        if dues.is_empty() {
            return self.after_drain(gvl, has_drained);
        }
        let mut wanted = Wanted::of_current(thread, now, dues).counted_from(clock::monotonic_ns());
        if let Some(learned) = learned {
            // The tick's stack, as far as it is there still.
            wanted = wanted.up_to(learned.frames);
        }
        FollowUp::Record(wanted)
    }

    /// Counts a call of the sampling callback, and the time since `began_ns`.
    fn count_callback(&self, gvl: &Gvl<'_>, counters: CaptureCounters, began_ns: u64) {
        if let Some(mut state) = self.state(gvl) {
            let now = clock::monotonic_ns();
            let stacks = StackCounts::running(counters.safepoint_stacks);
            state.engine.count_capture(counters);
            state
                .engine
                .count_sampling(now, stacks, now.saturating_sub(began_ns));
        }
    }
}

//! Events of threads of other Ractors: called by their hooks, on the threads themselves. What is
//! recorded of them becomes part of the session on the main Ractor.

use super::RunningSession;
use super::due::NewFrames;
use crate::ractors::OtherThread;
use rperf_vm::{GcEvent, GcPhase, Gvl, VmFrames, VmName};

impl RunningSession {
    /// `thread`, the calling one, of another Ractor, has got that Ractor's GVL.
    pub fn other_resumed(&self, vm: &impl VmFrames, thread: OtherThread) {
        let ready = self.waits.others_ready.since(thread.thread);
        self.waits.forget_foreign(thread.thread);
        self.others.resumed(&self.ticks.others, vm, thread, ready);
        if self.ticks.arm_for_other() {
            self.others.arm();
        }
    }

    /// `thread`, the calling one, of another Ractor, which has this `name`, is about to give that
    /// Ractor's GVL up.
    pub fn other_suspended(&self, vm: &impl VmFrames, thread: OtherThread, name: &impl VmName) {
        // READY can't come before the GVL is given up.
        self.waits.forget_ready(thread.thread);
        self.others.suspended(&self.ticks.others, vm, thread, name);
    }

    /// `thread`, the calling one, of another Ractor, collects garbage. As
    /// [`RunningSession::collecting`].
    pub fn other_collecting(
        &self,
        vm: &impl VmFrames,
        thread: OtherThread,
        event: GcEvent,
        phase: GcPhase,
    ) {
        let tick = self.ticks.last_tick();
        let work = self.others.collecting(vm, thread, event, tick, phase);
        if let Some(work) = work {
            self.add_collection(&work);
        }
    }

    /// Brings the threads of other Ractors from row `from` on up to `now`, and takes in what was
    /// recorded, until `until_ns`. Returns the row of the first for which there was no time, too.
    pub fn add_others<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        now: u64,
        from: usize,
        until_ns: u64,
    ) -> (NewFrames<'a>, Option<usize>) {
        let Some(mut state) = self.state(gvl) else {
            return (NewFrames::NONE, None);
        };
        let engine = &mut state.engine;
        let next = self
            .others
            .hand_over(now, &self.waits.others_ready, from, until_ns, |part| {
                engine.add_others(part);
            });
        (NewFrames::take(state), next)
    }

    /// How many threads of other Ractors are accounted.
    pub fn other_threads(&self) -> usize {
        self.others.threads()
    }
}

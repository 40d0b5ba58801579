//! The ends of waits for the GVL, and what was waited for until then: known or not, and by whom. Called by
//! the events.

use super::RunningSession;
use crate::accounting::Accounting;
use crate::threads::GvlPart;
use rperf_vm::{Gvl, RequestNumber, VmThread};

impl RunningSession {
    /// Leaves out the waits of `thread`, the calling one, which profiles of the session are without: nobody
    /// is to blame for them.
    pub fn leave_out_waits(&self, _: &Gvl<'_>, thread: VmThread) {
        self.waits.leave_out(thread);
    }

    /// A thread has got the GVL at `now`, after it was `ready` from that time on, or 0; `was_counted` is
    /// what [`GvlWaits::leave`](super::gvl_waits::GvlWaits::leave) has returned. What others wait from here on is the blame of
    /// its `accounting`, which hasn't been told yet.
    #[inline]
    pub(super) fn end_wait(
        &self,
        gvl: &Gvl<'_>,
        was_counted: bool,
        accounting: &mut Accounting,
        ready: u64,
        now: u64,
    ) {
        let Some(waiters) = &self.waits.waiters else {
            return;
        };
        if !was_counted && ready != 0 && !accounting.is_running() {
            self.count_unknown_holder(gvl, now.saturating_sub(ready));
        }
        match (waiters.up_to(now), accounting.blamed_up_to()) {
            // It has had it before.
            (Some(waits), Some(_)) => accounting.blame_running(waits),
            (Some(waits), None) => accounting.begin_blame(waiters.note_held(waits.ns)),
            // What nobody had it for is this thread's then: the sum stays whole.
            (None, None) => accounting.begin_blame(waiters.held_up_to()),
            (None, Some(_)) => {}
        }
    }

    /// The thread of `part` has got the GVL, for which it was `ready` from that time on, or 0: if it is in a
    /// request, what that has waited for is charged to it.
    #[inline]
    pub(super) fn end_request_wait(&self, gvl: &Gvl<'_>, part: &GvlPart, ready: u64) {
        if self.waits.waiters.is_some()
            && ready != 0
            && let Some(labels) = part.fiber_labels.noted().set
            && labels.request() != RequestNumber::NONE
            && let Some(accounting) = &part.accounting
            && let Some(mut state) = self.state(gvl)
        {
            let thread = accounting.seq();
            state.engine.end_request_wait(thread, labels, ready);
        }
    }

    #[cold]
    fn count_unknown_holder(&self, gvl: &Gvl<'_>, ns: u64) {
        if let Some(mut state) = self.state(gvl) {
            state.engine.count_unknown_holder(ns.cast_signed());
        }
    }
}

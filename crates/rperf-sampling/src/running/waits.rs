//! Waits for the GVL, and their blame: how long others have waited while a thread had it. Only where
//! that is measured. Called by the events, and where threads are brought up to a moment.

use super::RunningSession;
use crate::accounting::Accounting;
use crate::threads::Waits;
use crate::tick_capture::at_work::other_ractors;
use rperf_vm::{Gvl, VmThread, clock};

impl RunningSession {
    /// `thread` waits for the GVL from `now` on. On any native thread, without the GVL.
    #[inline]
    pub(super) fn begin_wait(&self, thread: VmThread, now: u64) {
        // Those of other Ractors wait for another GVL, and who is one of them isn't known here.
        if let Some(waiters) = &self.waiters
            && !other_ractors()
        {
            waiters.join(thread, now);
        }
    }

    /// `thread` waits no more, and may have done something else before it was said.
    #[inline]
    pub(super) fn forget_wait(&self, thread: VmThread) {
        if let Some(waiters) = &self.waiters {
            waiters.leave(thread, clock::monotonic_ns());
        }
    }

    /// Nobody waits as a section begins at `now`.
    pub(super) fn forget_waits(&self, now: u64) {
        if let Some(waiters) = &self.waiters {
            waiters.clear(now);
        }
    }

    /// `thread` has got the GVL at `now`, after it was `ready` from that time on, or 0. What others
    /// wait from here on is the blame of its `accounting`, which hasn't been told yet.
    #[inline]
    pub(super) fn end_wait(
        &self,
        gvl: &Gvl<'_>,
        thread: VmThread,
        accounting: &mut Accounting,
        ready: u64,
        now: u64,
    ) {
        let Some(waiters) = &self.waiters else {
            return;
        };
        let was_counted = waiters.leave(thread, now);
        if !was_counted && ready != 0 && !accounting.is_running() {
            self.count_unknown_holder(gvl, now.saturating_sub(ready));
        }
        if let Some(waits) = waiters.up_to(now) {
            accounting.begin_blame(waits);
        }
    }

    #[cold]
    fn count_unknown_holder(&self, gvl: &Gvl<'_>, ns: u64) {
        if let Some(mut state) = self.state(gvl) {
            state.engine.count_unknown_holder(ns);
        }
    }

    /// The thread of `accounting`, if it runs, is to blame for what others have waited up to `now`.
    #[inline]
    pub(super) fn blame_up_to(&self, now: u64, accounting: &mut Accounting) {
        if let Some(waits) = self.waits(now)
            && accounting.is_running()
        {
            accounting.blame_running(waits);
        }
    }

    /// The waits up to `now`; `None` if they aren't measured, or can't be read at the moment.
    #[inline]
    pub(super) fn waits(&self, now: u64) -> Option<Waits> {
        self.waiters.as_ref()?.up_to(now)
    }
}

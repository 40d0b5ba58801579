//! Waits for the GVL, and their blame: how long others have waited while a thread had it. Only where
//! that is measured. Called by the events, and where threads are brought up to a moment.

use super::RunningSession;
use crate::accounting::Accounting;
use crate::session::Session;
use crate::threads::GvlPart;
use crate::tick_capture::at_work::other_ractors;
use rperf_vm::{Gvl, RequestNumber, VmThread, Waits, clock};
use std::sync::atomic::Ordering::Relaxed;

impl RunningSession {
    /// `thread`, of the main Ractor, waits for the GVL from `now` on. On any native thread, without the
    /// GVL.
    #[inline]
    pub(super) fn begin_wait(&self, thread: VmThread, now: u64) {
        if let Some(waiters) = &self.waiters
            && !self.is_left_out(thread)
        {
            waiters.join(thread, now);
        }
    }

    /// Leaves out the waits of `thread`, the calling one, which profiles of the session are without: nobody
    /// is to blame for them.
    pub fn leave_out_waits(&self, _: &Gvl<'_>, thread: VmThread) {
        self.left_out.store(thread.0, Relaxed);
    }

    pub(super) fn is_left_out(&self, thread: VmThread) -> bool {
        self.left_out.load(Relaxed) == thread.0
    }

    /// [`RunningSession::begin_wait`] for a thread of any Ractor: where there are others it may wait for
    /// another GVL, and isn't counted.
    #[inline]
    pub(super) fn begin_any_wait(&self, thread: VmThread, now: u64) {
        if !other_ractors() {
            self.begin_wait(thread, now);
        }
    }

    /// `thread` has ended.
    #[inline]
    pub(super) fn forget_wait(&self, thread: VmThread) {
        // A later thread can have its address.
        let _ = self
            .left_out
            .compare_exchange(thread.0, 0, Relaxed, Relaxed);
        if let Some(waiters) = &self.waiters {
            waiters.leave(thread, clock::monotonic_ns());
        }
    }

    /// `thread`, of another Ractor, has got the GVL of that one. Its first READY came before it was known
    /// that there are others.
    #[inline]
    pub(super) fn forget_foreign_wait(&self, thread: VmThread) {
        if let Some(waiters) = &self.waiters {
            waiters.leave_foreign(thread, clock::monotonic_ns());
        }
    }

    /// Since when `thread` has been ready, as another native thread has told; 0 if it hasn't.
    #[inline]
    pub(super) fn told_ready(&self, thread: VmThread) -> u64 {
        // Two threads that are noted at the same place can get each other's time; here each has its own.
        let counted = self.waiters.as_ref().and_then(|it| it.since(thread));
        counted.unwrap_or_else(|| self.others_ready.since(thread))
    }

    /// Nobody waits as a section begins at `now`.
    pub(super) fn forget_waits(&self, now: u64) {
        if let Some(waiters) = &self.waiters {
            waiters.clear(now);
        }
    }

    /// The thread of `accounting`, the calling one, has the GVL as a section begins.
    pub(super) fn begin_blame(&self, accounting: &mut Accounting) {
        if let Some(waiters) = &self.waiters {
            accounting.begin_blame(waiters.held_up_to());
        }
    }

    /// `thread` has got the GVL at `now`. Called before ticks know that, because a tick counts who waits.
    /// Returns whether its wait was counted, or is left out: else nobody knows who had the GVL.
    #[inline]
    pub(super) fn leave_waits(&self, thread: VmThread, now: u64) -> bool {
        let Some(waiters) = &self.waiters else {
            return false;
        };
        waiters.leave(thread, now).is_some() || self.is_left_out(thread)
    }

    /// A thread has got the GVL at `now`, after it was `ready` from that time on, or 0; `was_counted` is
    /// what [`RunningSession::leave_waits`] has returned. What others wait from here on is the blame of
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
        let Some(waiters) = &self.waiters else {
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
        if self.waiters.is_some()
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

    /// The thread of `accounting` gives the GVL up at `now`.
    #[inline]
    pub(super) fn end_blame(&self, thread: VmThread, now: u64, accounting: &mut Accounting) {
        let Some(waiters) = &self.waiters else {
            return;
        };
        if !accounting.is_running() {
            // It had the GVL, though no event said so.
            waiters.leave(thread, now);
            return;
        }
        self.blame_up_to(now, accounting);
        if let Some(ns) = accounting.blamed_up_to() {
            waiters.note_free(ns);
        }
    }

    /// The thread of `accounting` collects garbage since there were the waits `before`, though no event
    /// has said that it has the GVL.
    pub(super) fn hold_since(&self, before: Waits, accounting: &Accounting) {
        if let Some(waiters) = &self.waiters
            && !accounting.is_running()
        {
            waiters.note_held(before.ns);
        }
    }

    /// Counts the waits without a holder since this was called last.
    pub(super) fn count_unheld_waits(&self, engine: &mut Session) {
        if let Some(waiters) = &self.waiters {
            engine.count_hand_over(waiters.take_hand_over());
            engine.count_unknown_holder(-waiters.take_foreign().cast_signed());
        }
    }

    #[cold]
    fn count_unknown_holder(&self, gvl: &Gvl<'_>, ns: u64) {
        if let Some(mut state) = self.state(gvl) {
            state.engine.count_unknown_holder(ns.cast_signed());
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

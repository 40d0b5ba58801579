//! Who waits for the GVL, or is ready for one, and the blame for it: how long others have waited while a
//! thread had it. The blame only where that is measured.

use crate::accounting::Accounting;
use crate::session::Session;
use crate::tick_capture::at_work::other_ractors;
use rperf_vm::{OthersReady, VmThread, Waiters, Waits, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The threads that are ready to run, as far as they don't note it themselves, and those that wait for
/// the main Ractor's GVL. On any thread, without the GVL, unless a method takes an accounting.
#[derive(Debug)]
pub(super) struct GvlWaits {
    /// When threads became ready that were woken by others.
    pub(super) others_ready: OthersReady,
    /// Who waits for the main Ractor's GVL, where that is measured.
    pub(super) waiters: Option<Arc<Waiters>>,
    /// The thread that profiles are without, by the number of its [`VmThread`]; 0: none.
    left_out: AtomicUsize,
}

impl GvlWaits {
    /// Nobody waits; `waiters` are there where blame is measured.
    pub(super) fn new(waiters: Option<Arc<Waiters>>) -> Self {
        Self {
            others_ready: OthersReady::default(),
            waiters,
            left_out: AtomicUsize::new(0),
        }
    }

    /// `thread`, of the main Ractor, waits for the GVL from `now` on. On any native thread, without the
    /// GVL.
    #[inline]
    pub(super) fn begin(&self, thread: VmThread, now: u64) {
        if let Some(waiters) = &self.waiters
            && !self.is_left_out(thread)
        {
            waiters.join(thread, now);
        }
    }

    /// `thread`, of any Ractor, waits from `now` on, as another native thread tells: where there are other
    /// Ractors it may wait for another GVL, and isn't counted.
    #[inline]
    pub(super) fn begin_told(&self, thread: VmThread, now: u64) {
        self.others_ready.note(thread, now);
        if !other_ractors() {
            self.begin(thread, now);
        }
    }

    /// Since when `thread` has been ready, as another native thread has told; 0 if it hasn't.
    #[inline]
    pub(super) fn told_ready(&self, thread: VmThread) -> u64 {
        // Two threads that are noted at the same place can get each other's time; here each has its own.
        let counted = self.waiters.as_ref().and_then(|it| it.since(thread));
        counted.unwrap_or_else(|| self.others_ready.since(thread))
    }

    /// What another native thread has told of `thread` before is over.
    #[inline]
    pub(super) fn forget_ready(&self, thread: VmThread) {
        self.others_ready.forget(thread);
    }

    /// Leaves out the waits of `thread`: nobody is to blame for them.
    pub(super) fn leave_out(&self, thread: VmThread) {
        self.left_out.store(thread.0, Relaxed);
    }

    /// Whether the waits of `thread` are left out.
    pub(super) fn is_left_out(&self, thread: VmThread) -> bool {
        self.left_out.load(Relaxed) == thread.0
    }

    /// `thread` has ended.
    #[inline]
    pub(super) fn forget(&self, thread: VmThread) {
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
    pub(super) fn forget_foreign(&self, thread: VmThread) {
        if let Some(waiters) = &self.waiters {
            waiters.leave_foreign(thread, clock::monotonic_ns());
        }
    }

    /// Nobody waits as a section begins at `now`.
    pub(super) fn clear(&self, now: u64) {
        if let Some(waiters) = &self.waiters {
            waiters.clear(now);
        }
    }

    /// `thread` has got the GVL at `now`. Called before ticks know that, because a tick counts who waits.
    /// Returns whether its wait was counted, or is left out: else nobody knows who had the GVL.
    #[inline]
    pub(super) fn leave(&self, thread: VmThread, now: u64) -> bool {
        let Some(waiters) = &self.waiters else {
            return false;
        };
        waiters.leave(thread, now).is_some() || self.is_left_out(thread)
    }

    /// The thread of `accounting`, the calling one, has the GVL as a section begins.
    pub(super) fn begin_blame(&self, accounting: &mut Accounting) {
        if let Some(waiters) = &self.waiters {
            accounting.begin_blame(waiters.held_up_to());
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

    /// The thread of `accounting`, if it runs, is to blame for what others have waited up to `now`.
    #[inline]
    pub(super) fn blame_up_to(&self, now: u64, accounting: &mut Accounting) {
        if let Some(waits) = self.up_to(now)
            && accounting.is_running()
        {
            accounting.blame_running(waits);
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
    pub(super) fn count_unheld(&self, engine: &mut Session) {
        if let Some(waiters) = &self.waiters {
            engine.count_hand_over(waiters.take_hand_over());
            engine.count_unknown_holder(-waiters.take_foreign().cast_signed());
        }
    }

    /// The waits up to `now`; `None` if they aren't measured, or can't be read at the moment.
    #[inline]
    pub(super) fn up_to(&self, now: u64) -> Option<Waits> {
        self.waiters.as_ref()?.up_to(now)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.waiters.as_ref().map_or(0, |it| size_of_val(&**it))
    }
}

//! How ticks interrupt the thread that holds the GVL, so that its stack is captured.

use super::holder::Holder;
use crate::sync::{AtomicBool, Ordering::SeqCst};
use crate::timer::interruption::Interruption;
use rperf_vm::NativeId;

/// How long, in ns, an interruption may stay unanswered before the thread is taken for
/// one that blocks it. On a busy machine one that doesn't may wait for a CPU as long.
const UNANSWERED_NS: u64 = 100_000_000;

/// Interrupts a native thread, and returns whether it could. Right before it sends the signal
/// it must call [`Interruption::commit`], and send none if that says no.
pub(crate) type Interrupt = fn(NativeId, &Interruption) -> bool;

/// The interruptions of the thread that holds the GVL: one at a time.
#[derive(Debug)]
pub(super) struct Interrupts {
    /// The last one.
    pub(super) last: Interruption,
    /// Sends the signal; async-signal-safe.
    interrupt: Interrupt,
    /// The holder's stack is captured at the tick: it is interrupted.
    captures: AtomicBool,
}

impl Interrupts {
    /// None yet, and no stack is captured at ticks.
    pub(super) fn new(interrupt: Interrupt) -> Self {
        Self {
            last: Interruption::default(),
            interrupt,
            captures: AtomicBool::new(false),
        }
    }

    /// Whether the holder's stack is captured at the tick.
    pub(super) fn captures(&self) -> bool {
        self.captures.load(SeqCst)
    }

    /// Whether the stack of the thread that holds the GVL is captured at the tick.
    pub(super) fn set_captures(&self, wanted: bool) {
        self.captures.store(wanted, SeqCst);
    }

    /// Whether native thread `tid` hasn't answered its interruption yet.
    pub(super) fn awaits(&self, tid: NativeId) -> bool {
        self.last.is_of(tid)
    }

    /// Whether the last one is so old that its thread seems to block it.
    pub(super) fn is_blocked(&self, now: u64) -> bool {
        now.saturating_sub(self.last.since_ns()) >= UNANSWERED_NS
    }

    /// Interrupts native thread `tid`, unless it gives the GVL up just now. Returns false if it
    /// has the GVL, as `holder` says, and can't be interrupted.
    pub(super) fn interrupt(&self, holder: &Holder, tid: NativeId, now: u64) -> bool {
        self.last.begin(tid, now);
        let is_sent = holder.tid() == tid && (self.interrupt)(tid, &self.last);
        if is_sent {
            self.last.sent(tid);
        }
        is_sent || !self.last.withdraw(tid) || holder.tid() != tid
    }

    /// The interruption has arrived at native thread `tid`. Async-signal-safe.
    pub(super) fn answered(&self, tid: NativeId) {
        self.last.answered(tid);
    }

    /// Native thread `tid` isn't noted any more as the one that has the GVL: afterwards no interruption is
    /// on its way to it.
    #[inline]
    pub(super) fn leave(&self, tid: NativeId) {
        self.last.leave(tid);
    }
}

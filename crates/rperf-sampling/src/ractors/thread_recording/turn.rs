//! The turns of a thread with its Ractor's GVL.

use crate::threads::native;
use rperf_vm::NativeId;

/// The last turn: where it runs, and since when.
#[derive(Debug)]
pub(super) struct Turn {
    /// The native thread whose CPU clock the accounting knows; 0 if none.
    pub(super) native_id: NativeId,
    /// When it got the GVL, as far as it was seen.
    pub(super) resumed_ns: u64,
}

impl Turn {
    /// None was seen.
    pub(super) const UNSEEN: Self = Self {
        native_id: NativeId::NONE,
        resumed_ns: 0,
    };

    /// Whether the accounting knows the CPU clock of the calling native thread.
    pub(super) fn is_here(&self) -> bool {
        self.native_id == native::id()
    }

    /// The accounting knows no CPU clock any more.
    pub(super) fn forget_clock(&mut self) {
        self.native_id = NativeId::NONE;
    }

    /// For how long it has had the GVL at `now`, in ns.
    pub(super) fn length(&self, now: u64) -> u64 {
        now.saturating_sub(self.resumed_ns)
    }
}

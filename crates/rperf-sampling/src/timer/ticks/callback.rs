//! The sampling callback as ticks ask for it. Async-signal-safe.

use crate::sync::{AtomicBool, Ordering::Relaxed};

/// How the VM is asked for the sampling callback, and whether that has come since.
#[derive(Debug)]
pub(super) struct Callback {
    /// Asks the VM; async-signal-safe.
    trigger: fn(),
    /// The VM was asked, and the callback hasn't run since.
    asked: AtomicBool,
}

impl Callback {
    /// The callback has not been asked for yet.
    pub(super) fn new(trigger: fn()) -> Self {
        Self {
            trigger,
            asked: AtomicBool::new(false),
        }
    }

    /// Asks for it.
    pub(super) fn ask(&self) {
        self.asked.store(true, Relaxed);
        (self.trigger)();
    }

    /// Whether it was asked for, and hasn't run since.
    pub(super) fn is_due(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The callback runs.
    pub(super) fn has_come(&self) {
        self.asked.store(false, Relaxed);
    }
}

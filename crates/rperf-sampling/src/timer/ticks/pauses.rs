//! Pauses of the session, in which there are no ticks.

use crate::sync::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

/// Whether there is a pause, and whether there ever was.
#[derive(Debug)]
pub(super) struct Pauses {
    /// No time counts just now: there are no ticks.
    is_on: AtomicBool,
    /// There was one in the session: it has slices even where one thread keeps the
    /// GVL.
    was_one: AtomicBool,
}

impl Pauses {
    /// None yet.
    pub(super) fn new() -> Self {
        Self {
            is_on: AtomicBool::new(false),
            was_one: AtomicBool::new(false),
        }
    }

    /// A pause begins.
    pub(super) fn begin(&self) {
        self.is_on.store(true, SeqCst);
        self.was_one.store(true, Relaxed);
    }

    /// The pause ends.
    pub(super) fn end(&self) {
        self.is_on.store(false, SeqCst);
    }

    /// Whether there is one.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(SeqCst)
    }

    /// Whether there was one.
    pub(super) fn was_one(&self) -> bool {
        self.was_one.load(Relaxed)
    }
}

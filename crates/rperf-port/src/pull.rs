//! What those who watch want of the VM: that the sums are brought up to now. The port's thread
//! wants it; a Ruby thread finds that out at its next safepoint, and does what needs the VM; the
//! session's worker has the rest, and answers. Only atomics and a channel are shared.

use crate::state::Port;
pub use crate::step::{Holder, Holding, SharedTable, Step};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Somebody watches.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// The sums are to be brought up to now.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Whether somebody watches. Any thread.
pub fn is_watched() -> bool {
    WATCHED.load(SeqCst)
}

/// Whether the sums are to be brought up to now: the caller does so. On a Ruby thread.
pub fn take_wanted() -> bool {
    WANTED.swap(false, SeqCst)
}

/// The sums were brought up to now. On the worker's thread; waits for nobody.
pub fn answer(step: Step) {
    if let Some(port) = Port::current() {
        port.hand_over_step(step);
    }
}

/// Somebody watches, and wants a step. On the port's thread.
pub(super) fn want() {
    WATCHED.store(true, SeqCst);
    WANTED.store(true, SeqCst);
}

/// Nobody watches any more; or in a forked child, which has no port's thread.
pub(super) fn forget() {
    WANTED.store(false, SeqCst);
    WATCHED.store(false, SeqCst);
}

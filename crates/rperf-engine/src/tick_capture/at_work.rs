//! When the handler of the tick's signal may take the stack of the thread that it has
//! interrupted. All checks are async-signal-safe.

use crate::vm::state::native_thread;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

/// The thread with the main Ractor's GVL reads or empties what the handler writes.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Whether the stack may be taken, if this Ractor collects no garbage: not while what was
/// taken before is being read, nor where other Ractors may collect. A thread
/// that they have stopped for that still gets signals. Were it to read while compaction
/// moves objects, it would fault in the collector's handler of faults, and wait there
/// for the VM's lock, on a signal stack where no collector looks for it.
pub fn may_take() -> bool {
    !native_thread::other_ractors() && !AT_WORK.load(SeqCst)
}

/// Nobody is at work: in a forked child, and before hooks are added. Async-signal-safe.
pub fn reset() {
    AT_WORK.store(false, SeqCst);
}

/// Keeps the handler off for as long as it lives. With the main Ractor's GVL.
///
/// The handler runs on the same thread, so no processor needs to be told.
pub struct AtWork {
    /// Another one is further up the stack.
    nested: bool,
}

impl AtWork {
    #[inline]
    pub fn begin() -> AtWork {
        let nested = AT_WORK.load(Relaxed);
        AT_WORK.store(true, Relaxed);
        compiler_fence(SeqCst);
        AtWork { nested }
    }
}

impl Drop for AtWork {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        AT_WORK.store(self.nested, Relaxed);
    }
}

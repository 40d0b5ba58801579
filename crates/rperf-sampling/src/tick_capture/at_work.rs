//! When the handler of the tick's signal may take the stack of the thread that it has
//! interrupted. Asked by the handler: all checks are async-signal-safe. Answered by the
//! bridge's hooks, on the thread with the main Ractor's GVL.

use rperf_vm::Gvl;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

/// What the handler asks.
#[derive(Debug, Default)]
struct Flags {
    /// The thread with the main Ractor's GVL reads or empties what the handler writes.
    at_work: AtomicBool,
    /// Another Ractor than the main one may run.
    other_ractors: AtomicBool,
}

/// The process's flags.
#[cfg(not(test))]
#[inline]
fn flags() -> &'static Flags {
    static FLAGS: Flags = Flags {
        at_work: AtomicBool::new(false),
        other_ractors: AtomicBool::new(false),
    };
    &FLAGS
}

/// The flags of a test: tests run side by side, each with a VM of its own on one thread.
#[cfg(test)]
fn flags() -> &'static Flags {
    thread_local!(static FLAGS: &'static Flags = Box::leak(Box::default()));
    FLAGS.with(|flags| *flags)
}

/// Whether the stack may be taken, if nobody collects garbage: not while what was taken before
/// is being read. Where there are other Ractors, the handler has to see for itself whether
/// one of them collects: a thread that they have stopped for that still gets signals. Were it to
/// read while compaction moves objects, it would fault in the collector's handler of faults, and
/// wait there for the VM's lock, on a signal stack where no collector looks for it.
pub fn may_take_stack() -> bool {
    !flags().at_work.load(SeqCst)
}

/// Notes whether other Ractors than the main one may run.
pub fn set_other_ractors(there: bool) {
    flags().other_ractors.store(there, SeqCst);
}

/// Whether other Ractors than the main one may run.
pub fn other_ractors() -> bool {
    flags().other_ractors.load(SeqCst)
}

/// Nobody is at work: in a forked child, and before hooks are added. Async-signal-safe.
pub fn reset_at_work() {
    flags().at_work.store(false, SeqCst);
}

/// Keeps the handler off for as long as it lives. With the main Ractor's GVL.
#[derive(Debug)]
pub struct AtWork<'g> {
    gvl: &'g Gvl<'g>,
    _off: HandlerOff,
}

impl<'g> AtWork<'g> {
    /// Keeps the handler off from now on.
    #[inline]
    pub fn begin(gvl: &'g Gvl<'g>) -> AtWork<'g> {
        AtWork {
            gvl,
            _off: HandlerOff::begin(),
        }
    }

    /// The token that it was made with.
    #[inline]
    pub(super) fn gvl(&self) -> &Gvl<'g> {
        self.gvl
    }
}

/// [`AtWork`] without a token: for collections, where the GVL's holder may be another thread,
/// which is stopped; and for callbacks that lend their token.
///
/// The handler runs on the same thread, so no processor needs to be told.
#[derive(Debug)]
pub struct HandlerOff {
    /// Another one is further up the stack.
    is_nested: bool,
}

impl HandlerOff {
    #[inline]
    /// Keeps the handler off from now on.
    pub fn begin() -> HandlerOff {
        let at_work = &flags().at_work;
        let is_nested = at_work.load(Relaxed);
        at_work.store(true, Relaxed);
        compiler_fence(SeqCst);
        HandlerOff { is_nested }
    }
}

impl Drop for HandlerOff {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        flags().at_work.store(self.is_nested, Relaxed);
    }
}

//! The memory of Ractors that have ended, which the VM keeps while there is a hook on threads
//! ([`version::thread_hooks_keep_ended_ractors`]): the collector is told of it, since it wouldn't
//! come by itself before hundreds of MB are kept.

use crate::ruby::ractor::AnyGvl;
use crate::ruby::safepoint::Job;
use crate::ruby::version;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What is kept of each, in bytes: a page of objects or more, and some kB for its thread. The
/// torture's Ractors took 70 kB each.
const KEPT: usize = 70 << 10;

/// So many are told of at once.
const BATCH: usize = 32;

/// Threads of other Ractors that have ended and that the collector wasn't told of. Most Ractors have
/// one thread.
static ENDED: AtomicUsize = AtomicUsize::new(0);

static JOB: Job = Job::new();

/// Registers what runs at the safepoint, where the VM needs it. With the GVL.
pub fn init() {
    if version::thread_hooks_keep_ended_ractors() {
        JOB.register(on_safepoint);
    }
}

/// So many threads of other Ractors have ended. On the session's worker: the VM asks the thread that
/// triggers a callback for it, and one that ends has no more safepoints.
pub fn note(ended: u32) {
    if ENDED.fetch_add(ended as usize, Relaxed) + ended as usize >= BATCH {
        JOB.trigger();
    }
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    // SAFETY: on a thread that runs Ruby code.
    match unsafe { AnyGvl::assume_held() } {
        AnyGvl::Main(_) => {
            let bytes = ENDED.swap(0, Relaxed) * KEPT;
            // SAFETY: with the GVL, at a safepoint. It may collect garbage, and raises nothing.
            unsafe { rb_sys::rb_gc_adjust_memory_usage(bytes as _) };
        }
        // Ended Ractors' memory goes to the main one.
        AnyGvl::Other(_) => JOB.trigger(),
    }
}

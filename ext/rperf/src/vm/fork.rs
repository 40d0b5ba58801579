//! fork: the child has neither worker nor timer. It drops the parent's session
//! without freeing it (other threads may have been at work on it) and runs on
//! unprofiled until it starts a session of its own.

use super::{LIVE, gc_hook, native_thread, thread_hook};
use std::ptr;
use std::sync::atomic::Ordering::SeqCst;

/// Registers the child's handler, once per process.
pub fn watch() {
    // SAFETY: the handler is valid for ever and async-signal-safe.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// In the child, before fork returns: only atomics and system calls.
unsafe extern "C" fn in_child() {
    LIVE.store(ptr::null_mut(), SeqCst);
    native_thread::forget_id();
    rperf_engine::forget_in_child();
}

/// In the child, once Ruby runs again: the inherited hooks do nothing any more,
/// and this removes them.
pub fn remove_inherited_hooks() {
    if LIVE.load(SeqCst).is_null() {
        thread_hook::remove();
        gc_hook::remove();
    }
}

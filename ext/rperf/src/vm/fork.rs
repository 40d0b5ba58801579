//! fork: the child has neither worker nor timer. It drops the parent's session
//! without freeing it (other threads may have been at work on it) and runs on
//! unprofiled until it starts a session of its own.
//!
//! The thread hook is away while the fork happens. The VM holds a read lock
//! while a hook runs, and a lock that another thread held at the fork is held
//! for ever in the child, where the next one to add or remove a hook would hang.

use super::{LIVE, PROCESS, Process, gc_hook, native_thread, thread_hook};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};

/// The hook was removed for the fork that is under way.
static PAUSED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once per process.
pub fn watch() {
    // SAFETY: the handlers are valid for ever.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

unsafe extern "C" fn before() {
    // SAFETY: the session is freed under the GVL only, which is asked for next;
    // without it just `holds_gvl` looks at it, and it lives on: see there.
    let Some(live) = (unsafe { LIVE.load(Acquire).as_ref() }) else {
        return;
    };
    if let Some(process) = PROCESS.get()
        && holds_gvl(process, live)
    {
        live.hooks_paused.store(true, SeqCst);
        PAUSED.store(true, SeqCst);
        thread_hook::remove();
    }
}

unsafe extern "C" fn in_parent() {
    if !PAUSED.swap(false, SeqCst) {
        return;
    }
    // SAFETY: the forking thread has had the GVL all along, so the session that
    // `before` saw is there still.
    if let Some(live) = unsafe { LIVE.load(Acquire).as_ref() } {
        thread_hook::add(live.mode);
    }
}

/// Before fork returns in the child: only atomics and system calls.
unsafe extern "C" fn in_child() {
    PAUSED.store(false, SeqCst);
    LIVE.store(ptr::null_mut(), SeqCst);
    native_thread::forget_id();
    rperf_engine::forget_in_child();
}

/// Whether the calling thread is a Ruby thread of the main Ractor with the GVL.
/// A C extension may fork on any thread, where nothing of the VM may be called.
fn holds_gvl(process: &Process, live: &super::Live) -> bool {
    // SAFETY: asks for the thread's Ruby thread, if any; from any thread.
    if unsafe { rb_sys::ruby_native_thread_p() } == 0 {
        return false;
    }
    // SAFETY: this is a Ruby thread.
    let thread = unsafe { rb_sys::rb_thread_current() };
    // SAFETY: the thread is alive, the key valid; may be called without the GVL.
    let state: *const super::thread_state::ThreadState =
        unsafe { rb_sys::rb_internal_thread_specific_get(thread, process.thread_key) }.cast();
    // SAFETY: null, or this thread's state, which is kept while it is alive.
    unsafe { state.as_ref() }.is_some_and(|state| {
        let seq = state.seq.load(Relaxed);
        seq != 0 && live.ticks.holder() == seq
    })
}

/// In the child, once Ruby runs again: removes what it inherited. Returns whether
/// it could: a thread hook that was not paused for the fork (it was made without
/// the GVL) stays and does nothing, as removing it could hang.
pub fn remove_inherited_hooks() -> bool {
    gc_hook::remove();
    !thread_hook::is_registered()
}

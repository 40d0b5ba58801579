//! fork: the child has neither worker nor timer. It drops the parent's session
//! without freeing it (other threads may have been at work on it) and runs on
//! unprofiled until it starts a session of its own.
//!
//! The thread hook is away while the fork happens. The VM holds a read lock
//! while a hook runs, and a lock that another thread held at the fork is held
//! for ever in the child, where the next one to add or remove a hook would hang.
//! The same goes for locks of the VM's that a thread holds as it runs hooks, so
//! threads that are about to leave them are given a moment.

use crate::vm::hooks::fiber as fiber_hook;
use crate::vm::hooks::gc as gc_hook;
use crate::vm::state::native_thread;
use crate::vm::hooks::time_slice as switch_hook;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::state::tick_guard;
use crate::vm::{LIVE};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::SeqCst};

thread_local! {
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// The hook was removed for the fork that is under way.
static PAUSED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once per process.
pub fn watch() {
    // SAFETY: the handlers are valid for ever.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Process._fork begins or ends on the calling thread (lib/rperf/fork_guard.rb).
/// Only such a fork is known to happen on a Ruby thread with the GVL: a C
/// extension may fork on any thread, where nothing of the VM may be called.
pub fn announce(forking: bool) {
    FORKING.set(forking);
}

unsafe extern "C" fn before() {
    if !FORKING.get() {
        return;
    }
    // SAFETY: sessions are freed under the GVL, which this thread holds.
    let Some(live) = (unsafe { LIVE.load(Acquire).as_ref() }) else {
        return;
    };
    if live.sections.are_open() {
        PAUSED.store(true, SeqCst);
        thread_hook::remove();
        thread_hook::wait_for_stragglers();
    } else if live.sections.ended_just_now() {
        thread_hook::wait_for_stragglers();
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
    tick_guard::reset();
    rperf_engine::forget_in_child();
}

/// In the child, once Ruby runs again: removes what it inherited. Returns whether
/// it could: a thread hook that was not paused for the fork (it was made without
/// the GVL) stays and does nothing, as removing it could hang.
pub fn remove_inherited_hooks() -> bool {
    gc_hook::remove();
    switch_hook::remove();
    fiber_hook::remove();
    !thread_hook::is_registered()
}

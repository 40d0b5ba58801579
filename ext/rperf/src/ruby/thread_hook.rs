//! The hook on threads of whichever session runs: how it comes and goes. There is one at a time;
//! a forked child inherits it.

use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, rb_event_flag_t, rb_internal_thread_event_data_t,
    rb_internal_thread_event_hook_t,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::time::Duration;

/// About as long as a fork takes.
const STRAGGLERS_PAUSE: Duration = Duration::from_millis(1);

/// What the VM calls.
pub type Callback =
    unsafe extern "C" fn(rb_event_flag_t, *const rb_internal_thread_event_data_t, *mut c_void);

/// The registered hook; null if there is none.
static HOOK: AtomicPtr<rb_internal_thread_event_hook_t> = AtomicPtr::new(ptr::null_mut());

/// Has the VM call `callback`, which takes no data. With the GVL, outside of hooks.
pub fn register(
    callback: Callback,
    events: rb_event_flag_t,
) -> *mut rb_internal_thread_event_hook_t {
    // SAFETY: the callback is valid for ever.
    unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(callback), events, ptr::null_mut()) }
}

/// Removes what `register` has returned, unless it is null. The caller gives the pointer away.
/// With the GVL, outside of hooks.
pub fn unregister(hook: *mut rb_internal_thread_event_hook_t) {
    if !hook.is_null() {
        // SAFETY: the hook is registered, and nobody else removes it.
        unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
    }
}

/// Registers the hook, with this callback. With the GVL, outside of hooks.
pub fn add(callback: Callback, events: rb_event_flag_t) {
    HOOK.store(register(callback, events), SeqCst);
}

/// Whether the hook is registered.
pub fn is_registered() -> bool {
    !HOOK.load(SeqCst).is_null()
}

/// Removes the hook. Afterwards no callback runs: the VM waits for those that
/// do. With the GVL, outside of hooks.
pub fn remove() {
    unregister(HOOK.swap(ptr::null_mut(), SeqCst));
}

/// After [`remove`], waits for threads that saw the hook before and have yet to
/// take the VM's lock for it, or were queued behind the removal. With the GVL,
/// outside of hooks.
///
/// Only taking the lock for writing waits for them, and only adding and removing a
/// hook does that. While the idle hook is there, others can come; its moment is
/// short, and the pause lets them finish.
pub fn wait_for_stragglers() {
    unregister(register(do_nothing, EXITED));
    std::thread::sleep(STRAGGLERS_PAUSE);
}

/// A callback without effect.
pub unsafe extern "C" fn do_nothing(
    _: rb_event_flag_t,
    _: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
}

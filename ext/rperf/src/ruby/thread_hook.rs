//! Hooks on threads: how they come and go. The running session, of whichever kind, has one; a
//! forked child inherits it.

use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, rb_event_flag_t, rb_internal_thread_event_data_t,
    rb_internal_thread_event_hook_t,
};
use rperf_vm::clock;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::time::Duration;

/// About as long as a fork takes.
const STRAGGLERS_PAUSE: Duration = Duration::from_millis(1);

/// What the VM calls.
pub type Callback =
    unsafe extern "C" fn(rb_event_flag_t, *const rb_internal_thread_event_data_t, *mut c_void);

/// The hook of the running session.
static HOOK: ThreadHook = ThreadHook::new();

/// A hook on threads: what the VM has given for it; null if it isn't registered.
pub struct ThreadHook(AtomicPtr<rb_internal_thread_event_hook_t>);

impl ThreadHook {
    /// A hook that isn't registered yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Has the VM call `callback`, which takes no data. With the GVL, outside of hooks, and while
    /// the hook isn't registered.
    pub fn add(&self, callback: Callback, events: rb_event_flag_t) {
        let (callback, data) = (Some(callback), ptr::null_mut());
        // SAFETY: the callback is valid for ever.
        let hook = unsafe { rb_sys::rb_internal_thread_add_event_hook(callback, events, data) };
        self.0.store(hook, SeqCst);
    }

    /// Whether the hook is registered.
    pub fn is_registered(&self) -> bool {
        !self.0.load(SeqCst).is_null()
    }

    /// Removes the hook, if it is there. Afterwards no callback runs: the VM waits for those that
    /// do. With the GVL, outside of hooks.
    pub fn remove(&self) {
        let hook = self.0.swap(ptr::null_mut(), SeqCst);
        if !hook.is_null() {
            // SAFETY: the VM has given it, and the swap gives it to this caller alone.
            unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
        }
    }
}

/// Registers the session's hook, with this callback. With the GVL, outside of hooks.
pub fn add(callback: Callback, events: rb_event_flag_t) {
    HOOK.add(callback, events);
}

/// Whether the session's hook is registered.
pub fn is_registered() -> bool {
    HOOK.is_registered()
}

/// Removes the session's hook, as [`ThreadHook::remove`] does.
pub fn remove() {
    HOOK.remove();
}

/// After [`remove`], waits for threads that saw the hook before and have yet to
/// take the VM's lock for it, or were queued behind the removal. With the GVL,
/// outside of hooks.
///
/// Only taking the lock for writing waits for them, and only adding and removing a
/// hook does that. While the idle hook is there, others can come; its moment is
/// short, and the pause lets them finish.
pub fn wait_for_stragglers() {
    let idle = ThreadHook::new();
    idle.add(do_nothing, EXITED);
    idle.remove();
    clock::sleep(STRAGGLERS_PAUSE);
}

/// A callback without effect.
pub unsafe extern "C" fn do_nothing(
    _: rb_event_flag_t,
    _: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
}

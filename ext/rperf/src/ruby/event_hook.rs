//! Hooks on the VM's events: how they come and go. With the GVL, outside of hooks.

use super::ractor::AnyGvl;
use super::version::internal_hooks_are_shared;
use rb_sys::{ID, VALUE};
use rperf_sampling::other_ractors;

/// What the VM calls: with the event, and for some events the thread.
pub type Callback = unsafe extern "C" fn(u32, VALUE, VALUE, ID, VALUE);

/// Whether hooks on internal events can be removed: that frees an entry of their list.
pub fn can_remove_internal() -> bool {
    !internal_hooks_are_shared() || !other_ractors()
}

/// What is told of internal events: they switch no tracing of Ruby code on, and threads of other
/// Ractors may have them.
pub trait OnInternalEvent {
    /// An event happened on the calling thread.
    fn happened(gvl: AnyGvl<'_>, event: u32);
}

/// A callback and its events.
pub struct EventHook {
    callback: Callback,
    events: u32,
}

impl EventHook {
    pub const fn new(callback: Callback, events: u32) -> EventHook {
        EventHook { callback, events }
    }

    /// For internal events.
    pub const fn internal<T: OnInternalEvent>(events: u32) -> EventHook {
        EventHook::new(on_internal_event::<T>, events)
    }

    /// Registers the hook.
    pub fn add(&self) {
        // SAFETY: the callback is valid for ever.
        unsafe {
            rb_sys::rb_add_event_hook(Some(self.callback), self.events, rb_sys::Qnil as VALUE)
        };
    }

    /// Removes the hook, if it is there.
    pub fn remove(&self) {
        // SAFETY: removes by function; does nothing if it is not registered.
        unsafe { rb_sys::rb_remove_event_hook(Some(self.callback)) };
    }
}

unsafe extern "C" fn on_internal_event<T: OnInternalEvent>(
    event: u32,
    _: VALUE,
    _: VALUE,
    _: ID,
    _: VALUE,
) {
    // SAFETY: the VM calls it on a thread that runs Ruby code.
    T::happened(unsafe { AnyGvl::assume_held() }, event);
}

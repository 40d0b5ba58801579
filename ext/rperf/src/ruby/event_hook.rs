//! Hooks on the VM's events: how they come and go. With the GVL, outside of hooks.

use rb_sys::{ID, VALUE};

/// What the VM calls: with the event, and for some events the thread.
pub type Callback = unsafe extern "C" fn(u32, VALUE, VALUE, ID, VALUE);

/// A callback and its events.
pub struct EventHook {
    callback: Callback,
    pub events: u32,
}

impl EventHook {
    pub const fn new(callback: Callback, events: u32) -> EventHook {
        EventHook { callback, events }
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

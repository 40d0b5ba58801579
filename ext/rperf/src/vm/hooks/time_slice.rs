//! The hook on the VM's time slices, for stacks that are taken at safepoints. A new
//! thread makes itself the one that triggers of the sampling callback reach before it
//! has the GVL, and until the VM's next switch of threads, up to 100 ms later, they miss
//! the thread that runs. While a thread waits for the GVL, the VM interrupts the running
//! one every 10 ms: this hook, on that thread, asks for the callback anew.

use crate::vm::hooks::sampling_job;
use crate::vm::{guarded_in_main_ractor};
use rb_sys::{ID, RUBY_INTERNAL_EVENT_SWITCH as SWITCH, VALUE};

/// Registers the hook. With the GVL, outside of hooks.
pub fn add() {
    // SAFETY: the callback is valid for ever. Internal events don't switch on tracing of
    // Ruby code.
    unsafe { rb_sys::rb_add_event_hook(Some(on_switch), SWITCH, 0) };
}

/// Removes the hook, if it is there. With the GVL.
pub fn remove() {
    // SAFETY: removes by function; does nothing if it is not registered.
    unsafe { rb_sys::rb_remove_event_hook(Some(on_switch)) };
}

unsafe extern "C" fn on_switch(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    // A trigger from a Ruby thread reaches that thread.
    guarded_in_main_ractor(|_, live| {
        if live.ticks.is_callback_due() {
            sampling_job::trigger();
        }
    });
}

//! The fiber event hook: gives new fibers the labels that they inherit, and stacks that
//! were taken before the labels that they were taken with. It is there
//! only while a session runs, time counts, and labels have been used: it costs
//! each switch between fibers some tens of ns. Runs on the thread whose fiber has
//! got control, with the GVL; Ruby code may be run.

use crate::vm::api::labels;
use crate::vm::{Live, guarded_in_main_ractor, running};
use rb_sys::{ID, RUBY_EVENT_FIBER_SWITCH as FIBER_SWITCH, VALUE};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};

/// Whether the hook is registered.
static ADDED: AtomicBool = AtomicBool::new(false);

/// Registers the hook if there is need of it. With the GVL, outside of hooks.
pub fn add_if_needed(live: &Live) {
    let needed = live.uses_labels.load(Relaxed) && live.sections.are_open();
    if needed && !ADDED.swap(true, SeqCst) {
        // SAFETY: the callback is valid for ever. This event comes from C code of the
        // VM's: no Ruby code is compiled anew for it.
        unsafe { rb_sys::rb_add_event_hook(Some(on_switch), FIBER_SWITCH, rb_sys::Qnil as VALUE) };
    }
}

/// Removes the hook, if it is there. With the GVL.
pub fn remove() {
    if ADDED.swap(false, SeqCst) {
        // SAFETY: removes by function.
        unsafe { rb_sys::rb_remove_event_hook(Some(on_switch)) };
    }
}

unsafe extern "C" fn on_switch(_: u32, _: VALUE, thread: VALUE, _: ID, _: VALUE) {
    let mut interrupt = None;
    guarded_in_main_ractor(|process, live| {
        labels::drain_at_switch(process, live, thread);
        if !labels::are_known(process, thread) {
            interrupt = labels::adopt(process, thread).err();
        }
        // Other threads may have run, and ended the session.
        if let Some(live) = running() {
            labels::note_current(process, live, thread);
        }
    });
    if let Some(interrupt) = interrupt {
        // SAFETY: nothing on this function's stack is left to be dropped.
        unsafe { magnus::rb_sys::resume_error(interrupt) };
    }
}

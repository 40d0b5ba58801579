//! The hook on calls and returns of chosen methods. The VM rewrites the code of these methods only,
//! and back again when the hook goes; `lib/rperf/session/target_points.rb` says when.

use crate::ruby::frames::RubyVm;
use crate::ruby::ractor::AnyGvl;
use crate::ruby::threads::RubyThread;
use crate::running::chosen::{OTHER_RACTORS, with_chosen};
use crate::running::label_set;
use crate::running::roots;
use magnus::Value;
use magnus::rb_sys::FromRawValue;
use rb_sys::{RUBY_EVENT_CALL as CALL, RUBY_EVENT_RETURN as RETURN, VALUE};
use rperf_vm::Gvl;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

/// A new TracePoint with the hook, to be enabled for one method. Outside of hooks.
pub fn point(_: &Gvl<'_>) -> Value {
    let every_thread = rb_sys::Qnil as VALUE;
    // SAFETY: the callback is valid for ever, and takes no data.
    unsafe {
        let events = CALL | RETURN;
        let point =
            rb_sys::rb_tracepoint_new(every_thread, events, Some(on_event), ptr::null_mut());
        Value::from_raw(point)
    }
}

unsafe extern "C" fn on_event(point: VALUE, _: *mut c_void) {
    // SAFETY: the VM calls this at an event of `point`, on a thread that runs Ruby code.
    let (gvl, event) = unsafe {
        let event = rb_sys::rb_tracearg_event_flag(rb_sys::rb_tracearg_from_tracepoint(point));
        (AnyGvl::assume_held(), event)
    };
    let AnyGvl::Main(gvl) = gvl else {
        // A method's hook can be all Ractors'.
        OTHER_RACTORS.store(true, Relaxed);
        return;
    };
    with_chosen(&gvl, |chosen, tracer| {
        let now = chosen.clock.now();
        let (vm, thread) = (RubyVm::new(&gvl), RubyThread::current(&gvl));
        let number = chosen.number_of(thread);
        if event == CALL {
            let labels = label_set::of_thread(&gvl, thread);
            tracer.enter(&vm, number, labels, now);
            roots::keep_chosen_alive(tracer);
        } else {
            tracer.leave(&vm, number, now);
        }
    });
}

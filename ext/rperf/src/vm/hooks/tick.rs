//! The VM's side of a tick: the signal handler, on a thread that holds its Ractor's GVL, at any
//! point of the program.

use super::gc;
use crate::ruby::frames::RubyVm;
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::safepoint;
use crate::vm::state::session::session;
use rperf_engine::{Gvl, Registers, may_take_stack, other_ractors, take_other_stack};
use std::ffi::c_void;

/// Takes the stack of the calling thread, which holds the main Ractor's GVL as thread `seq`.
pub fn take_stack(seq: u32, tick_ns: u64, registers: Registers) {
    if other_ractors() && is_stopped(&registers) {
        return;
    }
    // SAFETY: the thread holds the GVL; the handler is gone before a session is freed.
    let gvl = unsafe { Gvl::assume_held() };
    let Some(session) = session(&gvl).filter(|session| !session.is_over()) else {
        return;
    };
    let needs_callback = if session.ticks.is_collecting() {
        gc::is_over()
    } else if may_take_stack() {
        // SAFETY: on the thread with the GVL, and nobody is at work.
        let needs = unsafe { session.take_stack(&RubyVm(&gvl), seq, tick_ns, &registers) };
        needs || gc::may_be_silent(tick_ns)
    } else {
        false
    };
    if needs_callback {
        safepoint::trigger();
    }
}

/// Takes the stack of the calling thread, which holds the GVL of another Ractor, for the `owner` of
/// its place.
pub fn take_stack_of_other(owner: *mut c_void, native_id: u32, tick_ns: u64, registers: Registers) {
    if is_stopped(&registers) {
        return;
    }
    // SAFETY: a thread with a place holds its Ractor's GVL.
    let gvl = unsafe { OtherGvl::assume_held() };
    // SAFETY: from the handler, for the thread in this place. Nobody moves objects: who collects
    // garbage first waits until this thread has stopped, and that waits in the kernel.
    unsafe { take_other_stack(owner, &RubyVm(&gvl), native_id, tick_ns) };
}

/// Whether somebody collects garbage, or the calling thread may have been stopped for that: then
/// objects may move.
fn is_stopped(registers: &Registers) -> bool {
    registers.was_waiting || !gc::is_over()
}

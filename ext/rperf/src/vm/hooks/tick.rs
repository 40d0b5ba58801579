//! The VM's side of a tick: the signal handler, on the thread that holds the GVL, at any point
//! of the program.

use super::gc;
use crate::vm::state::frames::RubyVm;
use crate::vm::state::safepoint;
use crate::vm::state::session::session;
use rperf_engine::{Gvl, Registers, may_take_stack, other_ractors};

/// Takes the stack of the calling thread, which holds the GVL as thread `seq`.
pub fn take_stack(seq: u32, tick_ns: u64, registers: Registers) {
    if other_ractors() {
        // What no stack can be taken for at the tick is for the safepoint.
        safepoint::trigger();
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

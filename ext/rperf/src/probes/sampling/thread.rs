//! The thread event hook: READY, RESUMED, SUSPENDED and EXITED.
//!
//! RESUMED runs on the thread itself, with the GVL and under the scheduler's
//! lock; SUSPENDED on the thread while it still has the GVL; READY on any native
//! thread without it; EXITED on the thread without it.

use super::other_ractor;
use crate::recording::sample;
use crate::ruby::frames::RubyVm;
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::ractor::AnyGvl;
use crate::ruby::thread_hook;
use crate::ruby::thread_names::ThreadName;
use crate::ruby::threads::RubyThread;
use crate::running::sampling;
use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, RUBY_INTERNAL_THREAD_EVENT_READY as READY,
    RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, rb_event_flag_t,
    rb_internal_thread_event_data_t,
};
use rperf_sampling::threads::ThreadState;
use rperf_sampling::{
    FollowUp, Mode, OtherThread, RunningSession, other_ractors, set_other_ractors,
};
use rperf_vm::Gvl;
use std::ffi::c_void;

/// The events that a session in `mode` registers.
pub fn events(mode: Mode) -> rb_event_flag_t {
    match mode {
        Mode::Wall => READY | RESUMED | SUSPENDED | EXITED,
        // Waiting is no CPU time: nobody asks when it became ready.
        Mode::Cpu => RESUMED | SUSPENDED | EXITED,
    }
}

/// Registers the hook. With the GVL, outside of hooks.
pub fn add(mode: Mode) {
    thread_hook::add(on_event, events(mode));
}

unsafe extern "C" fn on_event(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    // SAFETY: the VM passes valid event data. The hook is removed before a session is freed.
    // RESUMED and SUSPENDED run with the GVL of the thread's Ractor; EXITED runs on the thread,
    // whose object is alive.
    unsafe {
        let thread = RubyThread::from_raw((*data).thread);
        sampling::in_hook(|session| match event {
            RESUMED => in_its_ractor(session, thread, RunningSession::resumed, |vm, thread| {
                session.other_resumed(&vm, thread);
            }),
            SUSPENDED => {
                // A thread that ends comes by here last.
                let name = ThreadName::of(thread);
                in_its_ractor(session, thread, suspended(thread, &name), |vm, of| {
                    session.other_suspended(&vm, of, &name);
                });
            }
            READY => session.ready(thread.id()),
            EXITED => session.exited(thread.id(), || thread.known_state_without_gvl()),
            _ => {}
        });
    }
}

/// What SUSPENDED means to `thread`, the calling one, of the main Ractor, which has this name.
fn suspended(
    thread: RubyThread<'_>,
    name: &ThreadName<'_>,
) -> impl for<'e> FnOnce(&'e RunningSession, &'e Gvl<'e>, &'e ThreadState) -> FollowUp<'e> {
    move |session, gvl, state| {
        session.note_name(gvl, state, name);
        session.suspended(gvl, state, || RubyVm::new(gvl).place_of(thread))
    }
}

/// Calls `event` with the state of `thread`, announced if it is new; or `other` if it is of another
/// Ractor than the main one.
///
/// # Safety
/// It is the calling thread, which holds its Ractor's GVL.
#[inline]
unsafe fn in_its_ractor(
    session: &RunningSession,
    thread: RubyThread<'_>,
    event: impl for<'e> FnOnce(&'e RunningSession, &'e Gvl<'e>, &'e ThreadState) -> FollowUp<'e>,
    other: impl FnOnce(RubyVm<'_, OtherGvl>, OtherThread),
) {
    // SAFETY: it holds the main Ractor's GVL, or has no state and the token isn't used.
    let gvl = unsafe { Gvl::assume_held() };
    if let Some(state) = thread.known_state(&gvl) {
        return sample::complete(&gvl, session, event(session, &gvl, state));
    }
    // SAFETY: by this function's contract.
    match unsafe { AnyGvl::assume_held() } {
        AnyGvl::Main(gvl) => {
            let state = thread.announce(&gvl, &session.turnover.new);
            sample::complete(&gvl, session, event(session, &gvl, state));
        }
        AnyGvl::Other(gvl) => {
            // Its first turn comes before anything that it does.
            if !other_ractors() {
                set_other_ractors(true);
            }
            other_ractor::event(&gvl, thread, other);
        }
    }
}

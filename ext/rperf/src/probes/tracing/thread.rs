//! Threads of a traced session that get the GVL and give it up.

use crate::ruby::thread_names::ThreadName;
use crate::ruby::threads::RubyThread;
use crate::ruby::{ractor, thread_hook};
use crate::running::tracing::{trace_session_unguarded, with_tracer};
use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_READY as READY, RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, rb_event_flag_t,
    rb_internal_thread_event_data_t,
};
use rperf_sampling::set_other_ractors;
use rperf_vm::Gvl;
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

/// Registers the hook. With the GVL, outside of hooks.
pub fn add() {
    thread_hook::add(on_thread, READY | RESUMED | SUSPENDED);
}

unsafe extern "C" fn on_thread(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    // SAFETY: the VM passes valid event data. The hook is removed before a session is freed. But for
    // READY, which touches atomics only, it is of the calling thread, which holds its Ractor's GVL.
    // If the thread is of another Ractor, it has no number, and the token isn't used.
    unsafe {
        let Some(session) = trace_session_unguarded() else {
            return;
        };
        let thread = RubyThread::from_raw((*data).thread);
        if event == READY {
            return session.ready.note(thread.id(), session.now());
        }
        let number = session.number_of(thread);
        if number.is_none() && !ractor::is_main() {
            session.progress.other_ractors.store(true, Relaxed);
            set_other_ractors(true);
            return;
        }
        let gvl = Gvl::assume_held();
        with_tracer(&gvl, |session, tracer| {
            let now = session.now();
            let number = number.unwrap_or_else(|| {
                let number = tracer.announce_new(now);
                session.set_number(thread, number);
                number
            });
            match event {
                RESUMED => tracer.resumed(number, session.ready.since(thread.id()), now),
                _ => {
                    // A thread that ends comes by here last.
                    tracer.note_name(number, &ThreadName::of(thread));
                    tracer.suspended(number, now);
                }
            }
            session.ready.forget(thread.id());
        });
    }
}

//! The sections and pauses of a traced session: calls count while a section is open, and nothing pauses
//! it. The hooks stay in between, as to add them can take long, and are told what threads and fibers do.
//! With the GVL, on the main Ractor, outside of hooks.

use super::ready_times;
use super::start::{add_hooks, take_threads};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::threads::RubyThread;
use crate::running::tracing::trace_session;
use crate::sampling::section::Switch;
use rperf_vm::Gvl;

/// How calls begin and end to count.
pub const TRACING: Switch = Switch { open, close };

fn open(gvl: &Gvl<'_>, threads: &LiveThreads) {
    let Some(session) = trace_session(gvl).filter(|it| !it.progress.has_failed()) else {
        return;
    };
    add_hooks(gvl, session);
    let fiber = RubyThread::current(gvl).present_fiber();
    let ready = ready_times(session, threads);
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        return;
    };
    let now = session.now();
    tracer.resume(now, |number| ready.get(&number).copied());
    take_threads(gvl, session, &mut tracer, threads, now);
    tracer.name_fiber(fiber.0);
    session.progress.set_counting(true);
}

fn close(gvl: &Gvl<'_>) {
    let Some(session) = trace_session(gvl).filter(|it| !it.progress.has_failed()) else {
        return;
    };
    session.progress.set_counting(false);
    if let Some(mut tracer) = session.tracer.borrow(gvl) {
        tracer.pause(session.now());
    }
}

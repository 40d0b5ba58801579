//! The moments at which calls begin to be traced, and end to be. On a thread of the main Ractor,
//! with the GVL, outside of hooks.

use crate::probes::{self, Lasts};
use crate::profile::errors;
use crate::ruby::frames::RubyVm;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::threads::RubyThread;
use crate::running::tracing::{TraceSession, trace_session};
use crate::running::{self, Running, label_set, roots, running};
use magnus::{Error, Ruby};
use rperf_tracing::{Timekeeper, TraceClock, TraceLevel, TraceVm, Tracer};
use rperf_vm::{Gvl, MAX_DEPTH, SessionId, VmFrames};
use std::sync::atomic::Ordering::Relaxed;

/// A session that is to begin, with the thread that its clock may need.
pub fn new_session(
    ruby: &Ruby,
    level: TraceLevel,
    clock: TraceClock,
) -> Result<Box<TraceSession>, Error> {
    let timekeeper = match clock {
        TraceClock::Noted => Some(Timekeeper::start()),
        _ => None,
    };
    let failed = |error| errors::rperf(ruby, format!("can't start the clock's thread: {error}"));
    let mut session = TraceSession::new(level, clock);
    session.setup.timekeeper = timekeeper.transpose().map_err(failed)?;
    Ok(Box::new(session))
}

/// From here on calls are traced.
pub fn begin(gvl: &Gvl<'_>, running: Running, threads: &LiveThreads) {
    running::begin(gvl, running);
    let Some(session) = trace_session(gvl) else {
        return;
    };
    // To add hooks can take long: the heap is walked.
    add_hooks(gvl, session);
    session.sections.add();
    if let Some(mut tracer) = session.tracer.borrow(gvl) {
        let start = session.setup.clock.reading();
        tracer.clear(start);
        take_threads(gvl, session, &mut tracer, threads, start.ticks);
    }
}

/// Adds the hooks of a session, unless it has them. They stay to its end.
pub fn add_hooks(gvl: &Gvl<'_>, session: &TraceSession) {
    if !session.progress.has_hooks.swap(true, Relaxed) {
        probes::add(gvl, Lasts::Session);
    }
}

/// The session is there, and no call is traced before its first section.
pub fn begin_deferred(gvl: &Gvl<'_>, running: Running) {
    running::begin(gvl, running);
    let Some(session) = trace_session(gvl) else {
        return;
    };
    session.progress.set_counting(false);
    if let Some(mut tracer) = session.tracer.borrow(gvl) {
        let start = session.setup.clock.reading();
        tracer.clear(start);
        tracer.pause(start.ticks);
    }
}

/// Takes the stacks of the threads that are new, or have run in a pause; the calling one runs.
pub fn take_threads(
    gvl: &Gvl<'_>,
    session: &TraceSession,
    tracer: &mut Tracer,
    threads: &LiveThreads,
    now: u64,
) {
    let (vm, current) = (RubyVm::new(gvl), RubyThread::current(gvl));
    let mut room = vec![0; MAX_DEPTH];
    for thread in threads.threads() {
        let known = session.number_of(thread);
        if known.is_some_and(|number| !tracer.lacks_stack(number)) {
            continue;
        }
        let is_current = thread.id() == current.id();
        let depth = is_current.then(|| TraceVm::depth(&vm));
        let found = match is_current {
            true => vm.backtrace(&mut room, &mut []),
            false => thread.backtrace(vm, &mut room, &mut []),
        };
        if found == 0 {
            // One that isn't there yet, or not any more.
            continue;
        }
        let number = known.unwrap_or_else(|| {
            let number = tracer.announce(now);
            session.set_number(thread, number);
            tracer.label_thread(number, label_set::of_thread(gvl, thread));
            number
        });
        tracer.adopt_stack(&vm, number, &room[..found], depth);
    }
    if let Some(number) = session.number_of(current) {
        tracer.resumed(number, 0, now);
    }
    roots::keep_traced_alive(tracer);
}

/// From here on calls of the session with this id are not traced, and here it is. Another one, which has
/// begun since, goes on.
pub fn end(gvl: &mut Gvl<'_>, id: SessionId) -> Option<Box<Running>> {
    running(gvl).filter(|running| running.id == id)?;
    probes::remove_all();
    // SAFETY: the hooks have been removed, and no caller has a reference to the session.
    unsafe { running::end(gvl, id) }
}

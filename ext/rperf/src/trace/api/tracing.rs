//! The moments at which calls begin to be traced, and end to be. On a thread of the main Ractor,
//! with the GVL, outside of hooks.

use crate::profile::errors;
use crate::ruby::frames::RubyVm;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::threads::RubyThread;
use crate::running::label_set;
use crate::running::sampling::{Ending, session as at_rest};
use crate::running::trace_roots as roots;
use crate::running::tracing::{TRACE, TraceSession, trace_session};
use crate::trace::hooks;
use magnus::{Error, Ruby};
use rperf_session::settings::Settings;
use rperf_tracing::{Timekeeper, TraceClock, TraceLevel, TraceVm, Tracer};
use rperf_vm::{Gvl, MAX_DEPTH, VmFrames};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A session that is to begin, with the thread that its clock may need.
pub fn new_session(
    ruby: &Ruby,
    settings: &Arc<Settings>,
    level: TraceLevel,
    clock: TraceClock,
) -> Result<TraceSession, Error> {
    let timekeeper = match clock {
        TraceClock::Noted => Some(Timekeeper::start()),
        _ => None,
    };
    let failed = |error| errors::rperf(ruby, format!("can't start the clock's thread: {error}"));
    let mut session = TraceSession::new(Arc::clone(settings), level, clock);
    session.timekeeper = timekeeper.transpose().map_err(failed)?;
    Ok(session)
}

/// From here on calls are traced.
pub fn begin(gvl: &Gvl<'_>, session: TraceSession, threads: &LiveThreads) {
    // To add hooks can take long: the heap is walked.
    add_hooks(&session);
    let session = TRACE.put(gvl, Box::new(session));
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        return;
    };
    let start = session.clock.reading();
    tracer.clear(start);
    take_threads(gvl, session, &mut tracer, threads, start.ticks);
}

/// Adds the hooks of a session, unless it has them. They stay to its end.
pub fn add_hooks(session: &TraceSession) {
    if !session.has_hooks.swap(true, Relaxed) {
        hooks::add(session.level, session.counts_objects);
    }
}

/// The session is there, and no call is traced before its first section.
pub fn begin_deferred(gvl: &Gvl<'_>, session: TraceSession) {
    let session = TRACE.put(gvl, Box::new(session));
    session.set_counting(false);
    if let Some(mut tracer) = session.tracer.borrow(gvl) {
        let start = session.clock.reading();
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
            let labels = at_rest(gvl).and_then(|it| label_set::of_thread(it, thread));
            tracer.label_thread(number, labels);
            number
        });
        tracer.adopt_stack(&vm, number, &room[..found], depth);
    }
    if let Some(number) = session.number_of(current) {
        tracer.resumed(number, 0, now);
    }
    roots::keep_alive(tracer);
}

/// Fails if a session is running or about to end: to be asked when the last Ruby code before
/// `begin` has run.
pub fn check_none_runs(ruby: &Ruby, gvl: &Gvl<'_>) -> Result<(), Error> {
    if at_rest(gvl).is_some() || trace_session(gvl).is_some() || Ending::is_there() {
        return Err(errors::running_already(ruby));
    }
    Ok(())
}

/// From here on those of the session with this id are not, and here it is. Another one, which has
/// begun since, goes on.
pub fn end(gvl: &mut Gvl<'_>, id: u32) -> Option<Box<TraceSession>> {
    trace_session(gvl).filter(|session| session.id() == id)?;
    hooks::remove();
    // SAFETY: the hooks have been removed, and no caller has a reference to the session. Those on
    // internal events may have to stay: they look for a session with this GVL only.
    unsafe { TRACE.take(gvl) }
}

//! The moments at which calls begin to be traced, and end to be. On a thread of the main Ractor,
//! with the GVL, outside of hooks.

use crate::profile::errors;
use crate::ruby::frames::RubyVm;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::threads::RubyThread;
use crate::trace::hooks;
use crate::trace::state::roots;
use crate::trace::state::session::{TRACE, TraceSession, trace_session};
use crate::vm::state::session::{Ending, session};
use magnus::{Error, Ruby};
use rperf_engine::trace::{Timekeeper, TraceClock, TraceLevel, TraceVm};
use rperf_engine::{Gvl, MAX_DEPTH};
use rperf_session::settings::Settings;
use std::sync::Arc;

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
    hooks::add(session.level, session.counts_objects);
    let session = TRACE.put(gvl, Box::new(session));
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        return;
    };
    let start = session.clock.reading();
    tracer.clear(start);
    let (vm, current) = (RubyVm::new(gvl), RubyThread::current(gvl));
    let mut room = vec![0; MAX_DEPTH];
    for thread in threads.threads() {
        let is_current = thread.id() == current.id();
        let depth = is_current.then(|| vm.depth());
        let found = match is_current {
            true => vm.frames(&mut room),
            false => thread.backtrace(&mut room, &mut []),
        };
        if found == 0 {
            // One that isn't there yet, or not any more.
            continue;
        }
        let number = tracer.announce(start.ticks);
        session.set_number(thread, number);
        tracer.adopt_stack(&vm, number, &room[..found], depth);
    }
    if let Some(number) = session.number_of(current) {
        tracer.resumed(number, 0, start.ticks);
    }
    roots::keep_alive(&mut tracer);
}

/// Fails if a session is running or about to end: to be asked when the last Ruby code before
/// `begin` has run.
pub fn check_none_runs(ruby: &Ruby, gvl: &Gvl<'_>) -> Result<(), Error> {
    if session(gvl).is_some() || trace_session(gvl).is_some() || Ending::is_there() {
        return Err(errors::running_already(ruby));
    }
    Ok(())
}

/// From here on those of the session with this id are not, and here it is. Another one, which has
/// begun since, goes on.
pub fn end(gvl: &mut Gvl<'_>, id: u32) -> Option<Box<TraceSession>> {
    trace_session(gvl).filter(|session| session.id() == id)?;
    hooks::remove();
    // SAFETY: the hooks have been removed, and no caller has a reference to the session. On Ruby 4.0
    // those on internal events can stay: they look for a session with this GVL only.
    unsafe { TRACE.take(gvl) }
}

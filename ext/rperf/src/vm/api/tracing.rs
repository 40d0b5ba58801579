//! The moments at which calls begin to be traced, and end to be. On a thread of the main Ractor,
//! with the GVL, outside of hooks.

use crate::vm::hooks::trace;
use crate::vm::state::frames::RubyVm;
use crate::vm::state::live_threads::LiveThreads;
use crate::vm::state::roots;
use crate::vm::state::threads::RubyThread;
use crate::vm::state::trace::{TRACE, TraceSession};
use rperf_engine::trace::TraceVm;
use rperf_engine::{Gvl, MAX_DEPTH};

/// From here on calls are traced.
pub fn begin(gvl: &Gvl<'_>, session: TraceSession, threads: &LiveThreads) {
    // To add hooks can take long: the heap is walked.
    trace::add(session.level);
    let session = TRACE.put(gvl, Box::new(session));
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        return;
    };
    let start = session.clock.reading();
    tracer.clear(start);
    let (vm, current) = (RubyVm(gvl), RubyThread::current(gvl));
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
        tracer.resumed(number, start.ticks);
    }
    roots::keep_words_alive(tracer.new_frames().iter().map(|frame| frame.word));
}

/// From here on they are not.
pub fn end(gvl: &mut Gvl<'_>) {
    trace::remove();
    // SAFETY: the hooks have been removed, and no caller has a reference to the session.
    drop(unsafe { TRACE.take(gvl) });
}

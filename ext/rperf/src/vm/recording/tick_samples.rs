//! Samples made of the stacks that were taken at ticks. In hooks, in the sampling callback and
//! in methods, with the GVL.

use super::roots;
use crate::vm::state::safepoint;
use crate::vm::state::session::RunningSession;
use crate::vm::state::threads::RubyThread;
use rperf_engine::threads::GvlPart;
use rperf_engine::{Accounting, AtWork, Gvl};

/// Makes samples of what the log has, all of it from the calling thread, whose part this
/// is and whose fiber has had the labels that are noted there. Whatever ends a slice of
/// its running time, or changes its labels, comes after this.
#[inline]
pub fn drain(gvl: &Gvl<'_>, session: &RunningSession, part: &mut GvlPart, guard: &AtWork<'_>) {
    if !session.tick_capture.is_empty(guard) {
        drain_log(gvl, session, part, guard);
    }
}

#[cold]
fn drain_log(gvl: &Gvl<'_>, session: &RunningSession, part: &mut GvlPart, guard: &AtWork<'_>) {
    let Some(mut state) = session.state(gvl) else {
        return;
    };
    let engine = &mut state.engine;
    let thread = part.accounting.as_ref().map(Accounting::seq);
    let drained = session.tick_capture.drain(guard, thread, |log| {
        let labels = part.fiber_labels.as_ref();
        let Some(accounting) = &mut part.accounting else {
            return 0;
        };
        let replayed = engine.replay(log, accounting, &mut part.last_stack, labels);
        roots::keep_alive(replayed.new_frames);
        replayed.ticks
    });
    let Some(drained) = drained else {
        return;
    };
    engine.count_sampling(drained.counters.tick_stacks, drained.spent_ns);
    engine.count_capture(drained.counters);
    // Its end makes objects, which is for the sampling callback.
    if engine.is_epoch_over(drained.now_ns) {
        safepoint::trigger();
    }
}

/// [`drain`] for the calling thread.
pub fn drain_current(gvl: &Gvl<'_>, session: &RunningSession, guard: &AtWork<'_>) {
    if !session.tick_capture.is_empty(guard)
        && let Some(state) = RubyThread::current(gvl).known_state()
        && let Some(mut part) = state.gvl_part(gvl)
    {
        drain_log(gvl, session, &mut part, guard);
    }
}

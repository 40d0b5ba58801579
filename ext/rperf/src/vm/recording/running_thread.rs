//! The Ruby thread at hand, which has the GVL: its accounting, and the recording of
//! what an event of its own makes due. In hooks and in the sampling callback.

use super::capture::{self, Whose};
use crate::vm::state::session::{GvlState, RunningSession};
use crate::vm::state::threads::RubyThread;
use rperf_engine::threads::{GvlPart, ThreadState, native};
use rperf_engine::{Accounting, Dues, Gvl, LastStack, clock};
use std::sync::atomic::Ordering::Relaxed;

/// Notes that `state`'s thread, the calling one, runs here and holds the GVL; wakes the timer
/// if it rests. Returns the thread's accounting, which `begin` sees if it is new, and its
/// last stack.
#[inline]
pub fn enter<'a>(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    state: &ThreadState,
    part: &'a mut GvlPart,
    begin: impl FnOnce(&mut Accounting),
) -> Option<(&'a mut Accounting, &'a mut LastStack)> {
    if !part.is_bound || session.shares_native_threads {
        bind_native_thread(gvl, session, state, part, begin);
    } else if !native::is_noted(state) {
        is_here(state);
    }
    let accounting = part.accounting.as_mut()?;
    let native_id = state.native_id.load(Relaxed);
    if session.ticks.set_holder(accounting.seq(), native_id) {
        session.state(gvl)?.engine.arm();
    }
    Some((accounting, &mut part.last_stack))
}

/// Makes sure that the thread has an accounting, and that this speaks of the CPU
/// clock of the native thread at hand.
#[cold]
fn bind_native_thread(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    state: &ThreadState,
    part: &mut GvlPart,
    begin: impl FnOnce(&mut Accounting),
) {
    let has_moved = is_here(state);
    if has_moved || !part.is_bound {
        let cpu = clock::thread_cpu_ns();
        if let Some(accounting) = &mut part.accounting {
            accounting.moved_to_native_thread(cpu);
        } else if let Some(mut state) = session.state(gvl) {
            begin(part.accounting.insert(state.engine.new_thread(cpu)));
        }
        part.is_bound = part.accounting.is_some();
    }
}

/// Notes on which native thread `state`'s thread runs: on this one. Returns
/// whether another Ruby thread ran here before it.
pub fn is_here(state: &ThreadState) -> bool {
    state.native_id.store(native::id(), Relaxed);
    native::switch_to(state)
}

/// Records at the stack of `thread`, the running one, what an event at `now` has made due:
/// most make nothing due, and don't come here.
#[cold]
pub fn record(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    thread: RubyThread<'_>,
    (now, dues): (u64, Dues),
    recorded: (&mut Accounting, &mut LastStack),
) {
    let Some(mut state) = session.state(gvl) else {
        return;
    };
    let started = clock::monotonic_ns();
    let GvlState {
        engine, backtrace, ..
    } = &mut *state;
    let whose = Whose::Current(thread);
    capture::record(
        gvl,
        session,
        (engine, backtrace),
        (now, dues),
        recorded,
        whose,
    );
    engine.count_sampling(0, clock::monotonic_ns().saturating_sub(started));
}

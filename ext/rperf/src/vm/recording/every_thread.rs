//! All threads that are accounted: bringing them up to now, and merging those that have ended.
//! In hooks, in the sampling callback and in methods, with the GVL.

use super::capture::{self, Whose};
use crate::vm::state::session::{GvlState, RunningSession};
use crate::vm::state::threads::{RubyThread, thread_of};
use rperf_engine::threads::{GvlPart, ThreadState};
use rperf_engine::{Accounting, Dues, Gvl, Session, clock};
use std::sync::atomic::Ordering::Relaxed;

/// Ended threads that are left until they are merged together.
const ENDED_BATCH: usize = 32;

/// A thread that is accounted.
pub struct AccountedThread<'a> {
    pub accounting: &'a mut Accounting,
    pub state: &'a ThreadState,
    pub is_current: bool,
}

impl AccountedThread<'_> {
    /// Since when the thread has been ready to run; 0 if it isn't, or runs.
    pub fn ready_since(&self, session: &RunningSession) -> u64 {
        match self.state.ready_ns.load(Relaxed) {
            0 => session.others_ready.since(self.state.thread),
            since => since,
        }
    }
}

/// The CPU clock of the thread of `state`, which is alive, if it can be told.
pub fn cpu_clock(session: &RunningSession, state: &ThreadState, is_current: bool) -> Option<u64> {
    if is_current {
        Some(clock::thread_cpu_ns())
    } else if session.shares_native_threads {
        None
    } else {
        clock::thread_cpu_of(state.native_id.load(Relaxed))
    }
}

/// Calls `act` for every accounted thread that `which` accepts, and records what that makes
/// due.
///
/// # Safety
/// `which` rejects threads that may have ended.
pub unsafe fn for_each_thread(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    state: &mut GvlState,
    now: u64,
    which: impl Fn(&Accounting) -> bool,
    mut act: impl FnMut(AccountedThread<'_>) -> Dues,
) {
    let current = RubyThread::current(gvl).id();
    let GvlState {
        engine,
        backtrace,
        threads,
        ..
    } = state;
    for thread in threads.iter() {
        let Some(mut part) = thread.gvl_part(gvl) else {
            continue;
        };
        let GvlPart {
            accounting,
            last_stack,
            ..
        } = &mut *part;
        let Some(accounting) = accounting.as_mut().filter(|it| which(it)) else {
            continue;
        };
        let is_current = thread.thread == current;
        let dues = act(AccountedThread {
            accounting,
            state: thread,
            is_current,
        });
        if dues.is_empty() {
            continue;
        }
        // SAFETY: alive by this function's contract.
        let ruby_thread = unsafe { thread_of(thread) };
        let whose = if is_current {
            Whose::Current(ruby_thread)
        } else {
            Whose::Other(ruby_thread)
        };
        let recorded = (accounting, last_stack);
        let tables = (&mut *engine, &mut *backtrace);
        capture::record(gvl, session, tables, (now, dues), recorded, whose);
    }
}

/// [`merge_ended`], once there are enough of them. The caller holds no thread's part.
#[inline]
pub fn merge_ended_batch(gvl: &Gvl<'_>, session: &RunningSession, now: u64) {
    if session.ended_threads.load(Relaxed) >= ENDED_BATCH
        && let Some(mut state) = session.state(gvl)
    {
        merge_ended(gvl, session, &mut state, now);
    }
}

/// Takes in threads that have been announced, and accounts those that ended.
pub fn merge_ended(gvl: &Gvl<'_>, session: &RunningSession, state: &mut GvlState, now: u64) {
    session.new_threads.take_into(&mut state.threads);
    let merged = merge(gvl, state, now, |thread| thread.end.has_come());
    session.ended_threads.fetch_sub(merged, Relaxed);
}

/// Accounts the threads of which `has_ended` says so, and lets go of their states. Returns how
/// many there were.
pub fn merge(
    gvl: &Gvl<'_>,
    state: &mut GvlState,
    now: u64,
    has_ended: impl Fn(&ThreadState) -> bool,
) -> usize {
    let GvlState {
        engine, threads, ..
    } = state;
    let before = threads.len();
    threads.retain(|thread| {
        let ended = has_ended(thread);
        if ended {
            finish(gvl, engine, thread, now);
        }
        !ended
    });
    before - threads.len()
}

/// Accounts a thread that has ended.
fn finish(gvl: &Gvl<'_>, engine: &mut Session, thread: &ThreadState, now: u64) {
    if let Some(mut part) = thread.gvl_part(gvl)
        && let Some(accounting) = &mut part.accounting
    {
        // Not known if its EXITED was missed.
        engine.finish_thread(now, accounting, thread.end.cpu_ns());
    }
}

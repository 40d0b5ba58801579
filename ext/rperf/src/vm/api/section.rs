//! The sections of a deferred session: time counts while at least one is open. In
//! between there are neither ticks nor hooks, so that the program runs as if there
//! were no session. With the GVL, on the main Ractor, outside of hooks.
//!
//! Hooks that stay and do nothing are not free: the VM takes a lock and walks their
//! list at each event. Threads that hand a token around took 3 to 15 % more CPU time
//! so, on small pipes 4 to 5 %; without hooks no difference could be measured. To add
//! and remove them takes some 2 us for each section, 5 us with 50 threads.

use crate::vm::hooks::{self, fiber, gc, thread, time_slice};
use crate::vm::recording::every_thread::{self, cpu_clock};
use crate::vm::recording::{running_thread, tick_samples};
use crate::vm::state::live_threads::LiveThreads;
use crate::vm::state::session::{RunningSession, session};
use crate::vm::state::threads::RubyThread;
use crate::vm::state::{label_set, ractor};
use magnus::{Error, RArray, Ruby};
use rperf_engine::threads::native;
use rperf_engine::{
    Accounting, AtWork, GcProgress, Gvl, LabelSet, Mode, clock, reset_at_work, set_other_ractors,
};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

/// Begins the section of a session that isn't deferred.
pub fn begin_only(gvl: &Gvl<'_>, session: &RunningSession, threads: &LiveThreads) {
    session.sections.add();
    let now = clock::monotonic_ns();
    if let Some(mut state) = session.state(gvl) {
        state.engine.begin(now);
    }
    open(gvl, session, threads, now);
}

/// A section begins; its session's id is noted in `undo`. Without a session there is
/// nothing to begin. Runs Ruby code.
pub fn enter(ruby: &Ruby, gvl: &mut Gvl<'_>, undo: RArray) -> Result<(), Error> {
    let is_first = |session: &RunningSession| session.sections.is_none();
    if label_set::are_used(gvl) {
        // Between sections nothing tells of a fiber's beginning.
        label_set::adopt(gvl)?;
    }
    let threads = if session(gvl).is_some_and(is_first) {
        // Between sections nothing tells of their beginning.
        set_other_ractors(ractor::are_there_others(ruby, gvl)?);
        Some(LiveThreads::list(ruby, gvl)?)
    } else {
        None
    };
    let Some(session) = session(gvl) else {
        return Ok(());
    };
    if is_first(session) {
        match &threads {
            Some(threads) => open(gvl, session, threads, clock::monotonic_ns()),
            // Another session has just begun, or the last section just ended.
            None => return enter(ruby, gvl, undo),
        }
    }
    session.sections.add();
    undo.push(session.id.0)
}

/// A section of the session with this id ends. The session may be over. Lets no other
/// thread run, and no interrupt come.
pub fn leave(gvl: &Gvl<'_>, id: u64) {
    let session = session(gvl).filter(|session| session.id.0 == id);
    if let Some(session) = session
        && session.sections.remove()
    {
        close(gvl, session);
    }
}

/// Time counts from `now` on.
fn open(gvl: &Gvl<'_>, session: &RunningSession, threads: &LiveThreads, now: u64) {
    if session.is_over.load(Acquire) {
        return;
    }
    // First: what takes stacks at ticks relies on them.
    native::forget_all();
    reset_at_work();
    gc::add();
    thread::add(session.mode);
    time_slice::HOOK.add();
    session.ticks.go_on();
    if let Some(mut state) = session.state(gvl) {
        every_thread::merge_ended(gvl, session, &mut state, now);
        every_thread::merge(gvl, &mut state, now, |thread| threads.lacks(thread));
        state.gc = GcProgress::default();
    }
    let current = RubyThread::current(gvl).id();
    for thread in threads.threads() {
        // One that has no frames is not there yet, or not any more.
        let is_current = thread.id() == current;
        if is_current || thread.has_frames() {
            begin_thread(gvl, session, thread, is_current, now);
        }
    }
    session.sections.open();
    fiber::add_if_needed(session);
}

/// Accounts a thread from `now` on: the current one runs, the others don't.
fn begin_thread(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    thread: RubyThread<'_>,
    is_current: bool,
    now: u64,
) {
    let thread_state = thread.state(&session.new_threads);
    thread_state.forget_events();
    let (Some(mut state), Some(mut part)) = (session.state(gvl), thread_state.gvl_part(gvl)) else {
        return;
    };
    // Another thread's clock is dear to read. Where it isn't read, it is when
    // the thread next gets the GVL.
    let reads_clock = is_current || session.mode == Mode::Cpu;
    let cpu = reads_clock.then(|| cpu_clock(session, thread_state, is_current));
    let cpu = cpu.flatten();
    if cpu.is_none() {
        thread_state.native_id.store(0, Relaxed);
    }
    part.is_bound = cpu.is_some();
    // Between sections nothing tells of switches of fibers.
    part.fiber_labels = label_set::of_thread(session, thread).map(LabelSet::share);
    let base = cpu.unwrap_or(0);
    let accounting = match &mut part.accounting {
        Some(accounting) => {
            accounting.moved_to_native_thread(base);
            accounting
        }
        none => none.insert(state.engine.new_thread(base)),
    };
    if is_current {
        running_thread::is_here(thread_state);
        accounting.begin_running(now);
        if session.ticks.set_holder(accounting.seq(), native::id()) {
            state.engine.arm();
        }
    } else {
        accounting.begin_off_gvl(now);
    }
}

/// Time no longer counts.
fn close(gvl: &Gvl<'_>, session: &RunningSession) {
    let guard = AtWork::begin(gvl);
    tick_samples::drain_current(gvl, session, &guard);
    session.sections.close();
    session.ticks.pause();
    hooks::remove_all();
    let now = clock::monotonic_ns();
    session.sections.note_end(now);
    let Some(mut state) = session.state(gvl) else {
        return;
    };
    every_thread::merge_ended(gvl, session, &mut state, now);
    let counts = |accounting: &Accounting| accounting.counts();
    // SAFETY: the threads that were in this section are alive: their end would have been an
    // EXITED. One for whom this section didn't count may have ended unnoticed before it.
    unsafe {
        every_thread::for_each_thread(gvl, session, &mut state, now, counts, |thread| {
            let ready = thread.ready_since(session);
            let cpu = || cpu_clock(session, thread.state, thread.is_current);
            thread.accounting.pause(now, ready, cpu)
        });
    }
}

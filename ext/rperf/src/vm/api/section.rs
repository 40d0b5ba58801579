//! The sections of a deferred session: time counts while at least one is open. In
//! between there are neither ticks nor hooks, so that the program runs as if there
//! were no session. With the GVL, on the main Ractor, outside of hooks.
//!
//! Hooks that stay and do nothing are not free: the VM takes a lock and walks their
//! list at each event. Threads that hand a token around took 3 to 15 % more CPU time
//! so, on small pipes 4 to 5 %; without hooks no difference could be measured. To add
//! and remove them takes some 2 us for each section, 5 us with 50 threads.

use crate::vm::state::live_threads::Alive;
use crate::vm::state::backtrace;
use crate::vm::state::tick_guard;
use crate::vm::state::tick_guard::{AtWork};
use crate::vm::hooks::fiber as fiber_hook;
use crate::vm::hooks::gc as gc_hook;
use crate::vm::api::labels;
use crate::vm::state::native_thread;
use crate::vm::state::ractor;
use crate::vm::recording::running_thread;
use crate::vm::hooks::sampling_job;
use crate::vm::hooks::time_slice as switch_hook;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::recording::tick_capture;
use crate::vm::{Live, PROCESS, Process, running};
use magnus::{Error, RArray, Ruby, Value};
use rb_sys::VALUE;
use rperf_engine::{Accounting, LabelSet, Mode, clock};
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst,
};

/// In ns; far longer than a hook takes.
const JUST_NOW: u64 = 100_000_000;

/// How far a session's sections are.
#[derive(Default)]
pub struct Sections {
    /// How many are open. A session that isn't deferred is one section that nobody
    /// ends.
    count: AtomicU32,
    /// Whether time counts and hooks are there.
    open: AtomicBool,
    /// When the last one ended.
    closed_ns: AtomicU64,
}

impl Sections {
    /// Whether time counts.
    #[inline]
    pub fn are_open(&self) -> bool {
        self.open.load(Acquire)
    }

    /// Whether hooks may still be at work that have been removed by now.
    pub fn ended_just_now(&self) -> bool {
        let since = clock::monotonic_ns().saturating_sub(self.closed_ns.load(Relaxed));
        !self.are_open() && since < JUST_NOW
    }
}

/// Begins the section of a session that isn't deferred.
pub fn begin_only(process: &Process, live: &'static Live, alive: &Alive) {
    live.sections.count.store(1, Relaxed);
    let now = clock::monotonic_ns();
    // SAFETY: the GVL is held, and nothing in this block releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        inner.session.begin(now);
    }
    open(process, live, alive, now);
}

/// A section begins; its session's number is noted in `undo`. Without a session there is
/// nothing to begin.
pub fn enter(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    let is_first = |live: &Live| live.sections.count.load(Relaxed) == 0;
    if let (Some(process), true) = (PROCESS.get(), labels::are_used()) {
        // Between sections nothing tells of a fiber's beginning.
        // SAFETY: a Ruby thread with the GVL.
        labels::adopt(process, unsafe { rb_sys::rb_thread_current() })?;
    }
    let alive = match running() {
        Some(live) if is_first(live) => {
            // Between sections nothing tells of their beginning.
            native_thread::set_other_ractors(ractor::others(ruby)?);
            Some(Alive::list(ruby)?)
        }
        _ => None,
    };
    let (Some(process), Some(live)) = (PROCESS.get(), running()) else {
        return Ok(());
    };
    if is_first(live) {
        match &alive {
            Some(alive) => open(process, live, alive, clock::monotonic_ns()),
            // Another session has just begun, or the last section just ended.
            None => return enter(ruby, undo),
        }
    }
    live.sections.count.fetch_add(1, Relaxed);
    undo.push(live.number)
}

/// A section of the session with this number ends. The session may be over. Lets no other
/// thread run, and no interrupt come.
pub fn leave(number: u64) {
    let session = running().filter(|live| live.number == number);
    if let Some(live) = session
        && live.sections.count.fetch_sub(1, Relaxed) == 1
    {
        close(live);
    }
}

/// Time counts from `now` on.
fn open(process: &Process, live: &'static Live, alive: &Alive, now: u64) {
    if live.quiet.load(Acquire) {
        return;
    }
    // First: what takes stacks at ticks relies on them.
    native_thread::forget_all();
    tick_guard::reset();
    gc_hook::add();
    thread_hook::add(live.mode);
    switch_hook::add();
    live.ticks.go_on();
    // SAFETY: the GVL is held, and nothing in this block releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        sampling_job::fold_exited(live, &mut inner, now);
        sampling_job::fold_ended(&mut inner, now, |state| alive.lacks(process, state));
        inner.gc = gc_hook::GcProgress::default();
    }
    // SAFETY: a Ruby thread with the GVL.
    let current = unsafe { rb_sys::rb_thread_current() };
    for thread in alive.threads() {
        // One that has no frames is not there yet, or not any more.
        if thread == current || backtrace::has_frames(thread) {
            begin_thread(process, live, thread, thread == current, now);
        }
    }
    live.sections.open.store(true, SeqCst);
    fiber_hook::add_if_needed(live);
}

/// Accounts a thread from `now` on: the current one runs, the others don't.
fn begin_thread(process: &Process, live: &Live, thread: VALUE, is_current: bool, now: u64) {
    let state = thread_hook::state_of(process, live, thread);
    state.forget_events();
    // SAFETY: the GVL is held, and nothing below releases it.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    // SAFETY: the GVL is held and no other reference to the part exists.
    let part = unsafe { state.gvl_part() };
    // Another thread's clock is dear to read. Where it isn't read, it is when
    // the thread next gets the GVL.
    let cpu = if is_current || live.mode == Mode::Cpu {
        running_thread::cpu_clock(live, state, is_current)
    } else {
        None
    };
    if cpu.is_none() {
        state.native_id.store(0, Relaxed);
    }
    part.placed = cpu.is_some();
    // Between sections nothing tells of switches of fibers.
    part.fiber_labels = labels::of_thread(live, thread).map(LabelSet::share);
    let base = cpu.unwrap_or(0);
    let accounting = match &mut part.accounting {
        Some(accounting) => {
            accounting.moved_to_native_thread(base);
            accounting
        }
        none => none.insert(inner.session.new_thread(base)),
    };
    if is_current {
        running_thread::is_here(live, state);
        accounting.begin_running(now);
        if live.ticks.set_holder(accounting.seq(), native_thread::id()) {
            inner.session.arm();
        }
    } else {
        accounting.begin_off_gvl(now);
    }
}

/// Time no longer counts.
fn close(live: &Live) {
    let guard = AtWork::begin();
    if let Some(process) = PROCESS.get() {
        tick_capture::drain_current(process, live, &guard);
    }
    live.sections.open.store(false, SeqCst);
    live.ticks.pause();
    remove_hooks();
    let now = clock::monotonic_ns();
    live.sections.closed_ns.store(now, Relaxed);
    // SAFETY: the GVL is held, and nothing below releases it.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    // The others that were in this section are alive: its end would have been an EXITED.
    sampling_job::fold_exited(live, &mut inner, now);
    // One for whom this section didn't count may have ended unnoticed before it.
    let counts = |accounting: &Accounting| accounting.counts();
    sampling_job::for_each_thread(live, &mut inner, now, counts, |thread| {
        let cpu = || running_thread::cpu_clock(live, thread.state, thread.is_current);
        let ready = running_thread::ready_since(live, thread.state);
        thread.accounting.pause(now, ready, cpu)
    });
}

/// Removes all hooks; afterwards none of them runs.
pub fn remove_hooks() {
    thread_hook::remove();
    gc_hook::remove();
    switch_hook::remove();
    fiber_hook::remove();
}

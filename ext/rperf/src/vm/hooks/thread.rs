//! The thread event hook: READY, RESUMED, SUSPENDED and EXITED.
//!
//! RESUMED runs on the thread itself, with the GVL and under the scheduler's
//! lock; SUSPENDED on the thread while it still has the GVL; READY on any native
//! thread without it; EXITED on the thread without it.

use crate::vm::recording::running_thread;
use crate::vm::recording::running_thread::{EventRecorder};
use crate::vm::state::thread_state::{ThreadState, UNKNOWN_TURN, mark_exited};
use crate::vm::state::tick_guard::AtWork;
use crate::vm::state::native_thread;
use crate::vm::hooks::sampling_job;
use crate::vm::recording::tick_capture;
use crate::vm::{Live, Process, guarded};
use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, RUBY_INTERNAL_THREAD_EVENT_READY as READY,
    RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED,
};
use rperf_engine::{Accounting, Mode, clock};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// About as long as a fork takes.
const STRAGGLERS_PAUSE: Duration = Duration::from_millis(1);

/// The registered hook; null if there is none. A forked child inherits it.
static HOOK: AtomicPtr<rb_sys::rb_internal_thread_event_hook_t> = AtomicPtr::new(ptr::null_mut());

/// Makes the key for a thread's state; once per process, as there are only 8.
pub fn create_key() -> rb_sys::rb_internal_thread_specific_key_t {
    // SAFETY: takes nothing; called once, with the GVL.
    unsafe { rb_sys::rb_internal_thread_specific_key_create() }
}

/// The events that a session in `mode` registers.
pub fn events(mode: Mode) -> rb_sys::rb_event_flag_t {
    match mode {
        Mode::Wall => READY | RESUMED | SUSPENDED | EXITED,
        // Waiting is no CPU time: nobody asks when it became ready.
        Mode::Cpu => RESUMED | SUSPENDED | EXITED,
    }
}

/// Registers the hook. With the GVL, outside of hooks.
pub fn add(mode: Mode) {
    let events = events(mode);
    // SAFETY: the callback is valid for ever and takes no data.
    let hook = unsafe {
        rb_sys::rb_internal_thread_add_event_hook(Some(on_event), events, ptr::null_mut())
    };
    HOOK.store(hook, SeqCst);
}

/// Whether the hook is registered.
pub fn is_registered() -> bool {
    !HOOK.load(SeqCst).is_null()
}

/// Removes the hook. Afterwards no callback runs: the VM waits for those that
/// do. With the GVL, outside of hooks.
pub fn remove() {
    let hook = HOOK.swap(ptr::null_mut(), SeqCst);
    if !hook.is_null() {
        // SAFETY: the hook is registered, and the swap lets this be done once.
        unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
    }
}

/// After [`remove`], waits for threads that saw the hook before and have yet to
/// take the VM's lock for it, or were queued behind the removal. With the GVL,
/// outside of hooks.
///
/// Only taking the lock for writing waits for them, and only adding and removing a
/// hook does that. While the idle hook is there, others can come; its moment is
/// short, and the pause lets them finish.
pub fn wait_for_stragglers() {
    unsafe extern "C" fn idle(
        _: rb_sys::rb_event_flag_t,
        _: *const rb_sys::rb_internal_thread_event_data_t,
        _: *mut c_void,
    ) {
    }
    // SAFETY: the callback is valid for ever; the hook is removed at once.
    unsafe {
        let hook = rb_sys::rb_internal_thread_add_event_hook(Some(idle), EXITED, ptr::null_mut());
        rb_sys::rb_internal_thread_remove_event_hook(hook);
    }
    std::thread::sleep(STRAGGLERS_PAUSE);
}

/// The state of the running thread, `thread`, announced if it is new; `None` if it
/// is one of another Ractor.
#[inline]
fn state_if_of_main_ractor<'a>(
    process: &Process,
    live: &'a Live,
    thread: rb_sys::VALUE,
) -> Option<&'a ThreadState> {
    let known = known_state(process, thread);
    known.or_else(|| {
        let is_main = native_thread::in_main_ractor(process);
        if !is_main {
            // Its first turn comes before anything that it does.
            native_thread::set_other_ractors(true);
        }
        is_main.then(|| announce(process, live, thread))
    })
}

/// The state of `thread`, a thread of the main Ractor, announced if it is new. With
/// the GVL.
#[inline]
pub fn state_of<'a>(process: &Process, live: &'a Live, thread: rb_sys::VALUE) -> &'a ThreadState {
    // SAFETY: `thread` is a live thread; the key is valid.
    let state: *mut ThreadState =
        unsafe { rb_sys::rb_internal_thread_specific_get(thread, process.thread_key) }.cast();
    // SAFETY: the slot is null or points to a state that the session keeps until
    // the thread has ended or the slot was cleared.
    match unsafe { state.as_ref() } {
        Some(state) => state,
        None => announce(process, live, thread),
    }
}

#[cold]
pub fn announce<'a>(process: &Process, live: &'a Live, thread: rb_sys::VALUE) -> &'a ThreadState {
    let state = live.new_threads.push(ThreadState::new(thread));
    // SAFETY: `thread` is a live thread; the key is valid.
    unsafe {
        rb_sys::rb_internal_thread_specific_set(thread, process.thread_key, state.cast());
    }
    // SAFETY: the list has made the session its owner; it lives as `state_of` says.
    unsafe { &*state }
}

/// The state of `thread`, a live object, if it has been announced. With the GVL.
pub fn known_state<'a>(process: &Process, thread: rb_sys::VALUE) -> Option<&'a ThreadState> {
    // SAFETY: `thread` is a thread whose object is alive; the key is valid.
    let slot = unsafe { rb_sys::rb_internal_thread_specific_get(thread, process.thread_key) };
    let state: *const ThreadState = slot.cast();
    // SAFETY: as in `state_of`.
    unsafe { state.as_ref() }
}

/// Clears the slot of a thread that has not ended. With the GVL.
pub fn clear_slot(process: &Process, state: &ThreadState) {
    // SAFETY: the thread has not ended, so its object is alive.
    unsafe {
        rb_sys::rb_internal_thread_specific_set(state.thread, process.thread_key, ptr::null_mut());
    }
}

unsafe extern "C" fn on_event(
    event: rb_sys::rb_event_flag_t,
    data: *const rb_sys::rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    // SAFETY: the VM passes valid event data.
    let thread = unsafe { (*data).thread };
    guarded(|process, live| match event {
        RESUMED => resumed(process, live, thread),
        SUSPENDED => suspended(process, live, thread),
        READY => ready(live, thread),
        EXITED => exited(process, live, thread),
        _ => {}
    });
}

#[inline]
fn resumed(process: &Process, live: &Live, thread: rb_sys::VALUE) {
    let Some(state) = state_if_of_main_ractor(process, live, thread) else {
        return;
    };
    let mut ready = state.ready_ns.load(Relaxed);
    if ready == 0 {
        ready = live.others_ready.since(thread);
        state.ready_ns.store(ready, Relaxed);
    }
    // READY came on this thread just now, and nobody had the GVL nor took it since:
    // there was no wait. It saves one of three clock readings.
    let free_since = state.free_since.load(Relaxed);
    let at_once = free_since != UNKNOWN_TURN && !live.ticks.taken_since(free_since as u32);
    let now = if at_once {
        ready
    } else {
        clock::monotonic_ns()
    };
    sampling_job::fold_exited_batch(live, now);
    // SAFETY: RESUMED runs with the GVL, and `state` is this thread's own.
    let part = unsafe { state.gvl_part() };
    let begin = |accounting: &mut Accounting| {
        accounting.begin_off_gvl(if ready == 0 { now } else { ready });
    };
    // SAFETY: RESUMED runs on the thread itself with the GVL, which nothing below
    // releases, and no callback runs inside a borrow of the session.
    let entered = unsafe { running_thread::enter(live, state, part, begin) };
    let Some((accounting, last_stack)) = entered else {
        return;
    };
    let dues = accounting.resumed(now, ready, clock::thread_cpu_ns);
    if !dues.is_empty() {
        // SAFETY: as above; the last stack is this thread's own.
        unsafe { running_thread::record(live, now, dues, accounting, last_stack) };
    }
}

#[inline]
fn suspended(process: &Process, live: &Live, thread: rb_sys::VALUE) {
    let Some(state) = state_if_of_main_ractor(process, live, thread) else {
        return;
    };
    // Until nobody is known to hold the GVL: what the handler took later would be
    // accounted to a slice that has ended.
    let guard = AtWork::begin();
    // SAFETY: SUSPENDED runs while the thread still holds the GVL; `state` is its
    // own and no other reference to its GVL part is held.
    let part = unsafe { state.gvl_part() };
    tick_capture::drain(live, part, &guard);
    // READY can't come before the GVL is given up.
    state.ready_ns.store(0, Relaxed);
    state.free_since.store(UNKNOWN_TURN, Relaxed);
    live.others_ready.forget(thread);
    if let Some(accounting) = &mut part.accounting {
        accounting.suspended(clock::monotonic_ns());
        live.ticks.clear_holder(accounting.seq());
    }
}

#[inline]
fn ready(live: &Live, thread: rb_sys::VALUE) {
    let now = clock::monotonic_ns();
    let Some(state) = own_state(live, thread) else {
        live.others_ready.note(thread, now);
        return;
    };
    if state.ready_ns.load(Relaxed) == 0 {
        if let Some(free_since) = live.ticks.free_since() {
            state.free_since.store(u64::from(free_since), Relaxed);
        }
        state.ready_ns.store(now, Relaxed);
    }
}

/// The state of `thread`, if this is its native thread. Without the GVL, too.
#[inline]
fn own_state<'a>(live: &Live, thread: rb_sys::VALUE) -> Option<&'a ThreadState> {
    // SAFETY: in a hook, and no two Ruby threads share this native thread.
    (!live.shares_native_threads).then(|| unsafe { native_thread::last_run(thread) })?
}

fn exited(process: &Process, live: &Live, thread: rb_sys::VALUE) {
    live.others_ready.forget(thread);
    let state = if live.shares_native_threads {
        known_state(process, thread)
    } else {
        // One that never ran while there were hooks has nothing to account.
        own_state(live, thread)
    };
    if let Some(state) = state {
        native_thread::leave();
        live.exited_threads.fetch_add(1, Relaxed);
        mark_exited(state, clock::thread_cpu_ns());
    }
}

//! The thread event hook: READY, RESUMED, SUSPENDED and EXITED.
//!
//! RESUMED runs on the thread itself, with the GVL and under the scheduler's
//! lock; SUSPENDED on the thread while it still has the GVL; READY on any native
//! thread without it; EXITED on the thread without it.

use crate::vm::recording::{every_thread, running_thread, tick_samples};
use crate::vm::state::ractor;
use crate::vm::state::session::{self, RunningSession};
use crate::vm::state::threads::{RubyThread, vm_thread};
use rb_sys::{
    RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED, RUBY_INTERNAL_THREAD_EVENT_READY as READY,
    RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, VALUE, rb_event_flag_t,
    rb_internal_thread_event_data_t, rb_internal_thread_event_hook_t,
};
use rperf_engine::threads::{ThreadState, UNKNOWN_TURN, VmThread, native};
use rperf_engine::{Accounting, AtWork, Gvl, Mode, clock, set_other_ractors};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed, Ordering::SeqCst};
use std::time::Duration;

/// About as long as a fork takes.
const STRAGGLERS_PAUSE: Duration = Duration::from_millis(1);

/// What the VM calls.
pub type Callback =
    unsafe extern "C" fn(rb_event_flag_t, *const rb_internal_thread_event_data_t, *mut c_void);

/// The registered hook; null if there is none. A forked child inherits it.
static HOOK: AtomicPtr<rb_internal_thread_event_hook_t> = AtomicPtr::new(ptr::null_mut());

/// The events that a session in `mode` registers.
pub fn events(mode: Mode) -> rb_event_flag_t {
    match mode {
        Mode::Wall => READY | RESUMED | SUSPENDED | EXITED,
        // Waiting is no CPU time: nobody asks when it became ready.
        Mode::Cpu => RESUMED | SUSPENDED | EXITED,
    }
}

/// Has the VM call `callback`, which takes no data. With the GVL, outside of hooks.
pub fn register(
    callback: Callback,
    events: rb_event_flag_t,
) -> *mut rb_internal_thread_event_hook_t {
    // SAFETY: the callback is valid for ever.
    unsafe { rb_sys::rb_internal_thread_add_event_hook(Some(callback), events, ptr::null_mut()) }
}

/// Registers the hook. With the GVL, outside of hooks.
pub fn add(mode: Mode) {
    HOOK.store(register(on_event, events(mode)), SeqCst);
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
    let hook = register(do_nothing, EXITED);
    // SAFETY: the hook was just registered.
    unsafe { rb_sys::rb_internal_thread_remove_event_hook(hook) };
    std::thread::sleep(STRAGGLERS_PAUSE);
}

/// A callback without effect.
pub unsafe extern "C" fn do_nothing(
    _: rb_event_flag_t,
    _: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
}

unsafe extern "C" fn on_event(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    // SAFETY: the VM passes valid event data. The hook is removed before a session is freed.
    // RESUMED and SUSPENDED run with the GVL of the thread's Ractor; EXITED runs on the thread,
    // whose object is alive.
    unsafe {
        let object = (*data).thread;
        session::in_hook(|session| match event {
            RESUMED => in_main_ractor(session, object, resumed),
            SUSPENDED => in_main_ractor(session, object, suspended),
            READY => ready(session, vm_thread(object)),
            EXITED => exited(session, RubyThread::from_raw(object)),
            _ => {}
        });
    }
}

/// Calls `event` for a thread of the main Ractor with its state, announced if it is new.
///
/// # Safety
/// `object` is the calling thread, which holds its Ractor's GVL.
#[inline]
unsafe fn in_main_ractor(
    session: &RunningSession,
    object: VALUE,
    event: impl FnOnce(&Gvl<'_>, &RunningSession, RubyThread<'_>, &ThreadState),
) {
    // SAFETY: by this function's contract; only used for threads of the main Ractor.
    let (gvl, thread) = unsafe { (Gvl::assume_held(), RubyThread::from_raw(object)) };
    let state = thread.known_state().or_else(|| {
        // SAFETY: by this function's contract.
        let is_main = unsafe { ractor::is_main() };
        if !is_main {
            // Its first turn comes before anything that it does.
            set_other_ractors(true);
        }
        is_main.then(|| thread.announce(&session.new_threads))
    });
    if let Some(state) = state {
        event(&gvl, session, thread, state);
    }
}

#[inline]
fn resumed(gvl: &Gvl<'_>, session: &RunningSession, thread: RubyThread<'_>, state: &ThreadState) {
    let mut ready = state.ready_ns.load(Relaxed);
    if ready == 0 {
        ready = session.others_ready.since(thread.id());
        state.ready_ns.store(ready, Relaxed);
    }
    // READY came on this thread just now, and nobody had the GVL nor took it since:
    // there was no wait. It saves one of three clock readings.
    let free_since = state.free_since.load(Relaxed);
    let at_once = free_since != UNKNOWN_TURN && !session.ticks.taken_since(free_since as u32);
    let now = if at_once {
        ready
    } else {
        clock::monotonic_ns()
    };
    every_thread::merge_ended_batch(gvl, session, now);
    let Some(mut part) = state.gvl_part(gvl) else {
        return;
    };
    let begin = |accounting: &mut Accounting| {
        accounting.begin_off_gvl(if ready == 0 { now } else { ready });
    };
    let entered = running_thread::enter(gvl, session, state, &mut part, begin);
    let Some((accounting, last_stack)) = entered else {
        return;
    };
    let dues = accounting.resumed(now, ready, clock::thread_cpu_ns);
    if !dues.is_empty() {
        running_thread::record(gvl, session, thread, (now, dues), (accounting, last_stack));
    }
}

#[inline]
fn suspended(gvl: &Gvl<'_>, session: &RunningSession, thread: RubyThread<'_>, state: &ThreadState) {
    // Until nobody is known to hold the GVL: what the handler took later would be
    // accounted to a slice that has ended.
    let guard = AtWork::begin(gvl);
    let Some(mut part) = state.gvl_part(gvl) else {
        return;
    };
    tick_samples::drain(gvl, session, &mut part, &guard);
    // READY can't come before the GVL is given up.
    state.forget_events();
    session.others_ready.forget(thread.id());
    if let Some(accounting) = &mut part.accounting {
        accounting.suspended(clock::monotonic_ns());
        session.ticks.clear_holder(accounting.seq());
    }
}

#[inline]
fn ready(session: &RunningSession, thread: VmThread) {
    let now = clock::monotonic_ns();
    let Some(state) = own_state(session, thread) else {
        session.others_ready.note(thread, now);
        return;
    };
    if state.ready_ns.load(Relaxed) == 0 {
        if let Some(free_since) = session.ticks.free_since() {
            state.free_since.store(u64::from(free_since), Relaxed);
        }
        state.ready_ns.store(now, Relaxed);
    }
}

/// The state of `thread`, if this is its native thread. Without the GVL, too.
#[inline]
fn own_state<'a>(session: &RunningSession, thread: VmThread) -> Option<&'a ThreadState> {
    // SAFETY: in a hook, and no two Ruby threads share this native thread.
    (!session.shares_native_threads).then(|| unsafe { native::last_run(thread) })?
}

fn exited(session: &RunningSession, thread: RubyThread<'_>) {
    session.others_ready.forget(thread.id());
    let state = if session.shares_native_threads {
        thread.known_state()
    } else {
        // One that never ran while there were hooks has nothing to account.
        own_state(session, thread.id())
    };
    if let Some(state) = state {
        native::leave();
        session.ended_threads.fetch_add(1, Relaxed);
        state.end.note(clock::thread_cpu_ns());
    }
}

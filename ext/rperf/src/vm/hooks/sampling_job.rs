//! The sampling callback: the VM runs it at a safepoint after a tick, on the
//! thread that holds the GVL, of whichever Ractor gets there first.

use crate::vm::recording::capture::{VmStack, Whose};
use crate::vm::recording::running_thread;
use crate::vm::recording::running_thread::{EventRecorder};
use crate::vm::state::thread_state::ThreadState;
use crate::vm::state::tick_guard::AtWork;
use crate::vm::recording::epoch;
use crate::vm::hooks::gc as gc_hook;
use crate::vm::api::labels;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::recording::tick_capture;
use crate::vm::{Inner, Live, PROCESS, Process, guarded_in_main_ractor};
use rperf_engine::{Accounting, CaptureCounters, SessionRecorder, clock};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

/// Ended threads that are left until they are folded in together.
const EXITED_BATCH: usize = 32;

/// Registers the callback, once per process. With the GVL.
pub fn preregister() -> rb_sys::rb_postponed_job_handle_t {
    // SAFETY: the callback is valid for ever and takes no data.
    unsafe { rb_sys::rb_postponed_job_preregister(0, Some(on_safepoint), ptr::null_mut()) }
}

/// Asks for the callback. Async-signal-safe; from any native thread.
pub fn trigger() {
    if let Some(process) = PROCESS.get() {
        // SAFETY: the handle is valid; the call only sets atomics of the VM.
        unsafe { rb_sys::rb_postponed_job_trigger(process.job) };
    }
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    guarded_in_main_ractor(sample);
}

fn sample(process: &Process, live: &'static Live) {
    let guard = AtWork::begin();
    let now = clock::monotonic_ns();
    gc_hook::listen(live, now);
    live.ticks.at_safepoint();
    // SAFETY: this is a Ruby thread with the GVL.
    let thread = unsafe { rb_sys::rb_thread_current() };
    let state = thread_hook::state_of(process, live, thread);
    // SAFETY: the callback holds the main Ractor's GVL, and `state` is this
    // thread's own.
    let part = unsafe { state.gvl_part() };
    tick_capture::drain(live, part, &guard);
    // SAFETY: the callback runs on a Ruby thread that holds the GVL, nothing below
    // releases it, and callbacks don't run inside a borrow of the session.
    let entered = unsafe {
        running_thread::enter(live, state, part, |accounting| {
            accounting.begin_running(now);
        })
    };
    let Some((accounting, last_stack)) = entered else {
        return;
    };
    let tick = live.ticks.last_tick();
    let learned = live.tick_capture.learn(accounting.seq(), &guard);
    let whose = match learned {
        // The tick's stack, as far as it is there still.
        Some((frames, _)) => Whose::CurrentUpTo(frames),
        None => Whose::Current,
    };
    let ready = state.ready_ns.load(Relaxed);
    // Else what is due is of the time before the tick.
    let was_running = accounting.is_running();
    let dues = accounting.sample(now, tick, ready, clock::thread_cpu_ns);
    let stacks = u64::from(was_running && !dues.is_empty());
    if !dues.is_empty() {
        // SAFETY: as above; the last stack is this thread's own.
        unsafe { running_thread::record_at(live, now, dues, (accounting, last_stack), whose) };
    }
    fold_exited_batch(live, now);
    // SAFETY: as above.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    let is_epoch_over = inner.session.is_epoch_over(now);
    inner.session.count_capture(CaptureCounters {
        safepoint_calls: 1,
        safepoint_stacks: stacks,
        hidden_frames: u64::from(learned.is_some_and(|(_, is_new)| is_new)),
        ..CaptureCounters::default()
    });
    inner
        .session
        .count_sampling(stacks, clock::monotonic_ns().saturating_sub(now));
    drop(inner);
    if is_epoch_over {
        live.tick_capture.forget_learned(&guard);
        epoch::end(live);
    }
}

/// A thread that is accounted.
pub struct AccountedThread<'a> {
    pub accounting: &'a mut Accounting,
    pub state: &'a ThreadState,
    pub is_current: bool,
}

/// Calls `act` for the threads that have an accounting and are alive, of which `which`
/// makes sure, and records what that makes due. With the session's cell borrowed.
pub fn for_each_thread(
    live: &Live,
    inner: &mut Inner,
    now: u64,
    which: impl Fn(&Accounting) -> bool,
    mut act: impl FnMut(AccountedThread<'_>) -> Dues,
) {
    // SAFETY: a Ruby thread with the GVL.
    let current = unsafe { rb_sys::rb_thread_current() };
    let Inner {
        session,
        threads,
        scratch,
        ..
    } = inner;
    for state in threads.iter() {
        // SAFETY: the GVL is held and no other reference to the part exists.
        let part = unsafe { state.gvl_part() };
        let Some(accounting) = part.accounting.as_mut().filter(|it| which(it)) else {
            continue;
        };
        let is_current = state.thread == current;
        let dues = act(AccountedThread {
            accounting,
            state,
            is_current,
        });
        if dues.is_empty() {
            continue;
        }
        let whose = running_thread::whose(state, is_current);
        let stack = dues.needs_stack().then(|| capture::take(scratch, whose));
        let position = Position {
            stack: stack.flatten(),
            last: &mut part.last_stack,
            labels: labels::of_thread(live, state.thread),
        };
        capture::keep_alive(session.record(now, accounting, dues, position));
    }
}

/// [`fold_exited`], once there are enough of them. With the GVL; the caller holds no
/// thread's part.
#[inline]
pub fn fold_exited_batch(live: &Live, now: u64) {
    if live.exited_threads.load(Relaxed) >= EXITED_BATCH {
        // SAFETY: the GVL is held, and nothing in this block releases it.
        if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
            fold_exited(live, &mut inner, now);
        }
    }
}

/// Takes in threads that have been announced, and accounts those that ended.
/// With the session's cell borrowed.
pub fn fold_exited(live: &Live, inner: &mut Inner, now: u64) {
    live.new_threads.take_into(&mut inner.threads);
    let exited = |state: &ThreadState| state.exited.load(Acquire);
    let folded = fold_ended(inner, now, exited);
    live.exited_threads.fetch_sub(folded, Relaxed);
}

/// Accounts the threads that have ended, and lets go of their states, which nobody
/// else may have. Returns how many there were. With the session's cell borrowed.
pub fn fold_ended(inner: &mut Inner, now: u64, has_ended: impl Fn(&ThreadState) -> bool) -> usize {
    let Inner {
        session, threads, ..
    } = inner;
    let before = threads.len();
    threads.retain(|state| {
        let ended = has_ended(state);
        if ended {
            finish(state, session, now);
        }
        !ended
    });
    before - threads.len()
}

/// Accounts a thread that has ended.
fn finish(state: &ThreadState, session: &mut rperf_engine::Session, now: u64) {
    // SAFETY: the GVL is held (the session's cell is borrowed), and the thread
    // has ended, so nobody else looks at its state.
    let part = unsafe { state.gvl_part() };
    if let Some(accounting) = &mut part.accounting {
        // Not known if its EXITED was missed.
        let cpu = state
            .exited
            .load(Acquire)
            .then(|| state.exit_cpu_ns.load(Relaxed));
        session.finish_thread(now, accounting, cpu);
    }
}

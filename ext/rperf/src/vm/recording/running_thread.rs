//! The Ruby thread at hand, which has the GVL: its accounting, and the recording of
//! what an event of its own makes due.

use crate::vm::recording::capture::{VmStack, Whose};
use crate::vm::state::thread_state::{GvlPart, ThreadState};
use crate::vm::api::labels;
use crate::vm::state::native_thread;
use crate::vm::{Inner, Live};
use rperf_engine::{Accounting, LastStack, Place, Recorder, Values, clock};
use rperf_model::State;
use std::sync::atomic::Ordering::Relaxed;

/// Notes that `state`'s thread runs here and holds the GVL; wakes the timer if it
/// rests. Returns the thread's accounting, which `begin` sees if it is new, and its
/// last stack.
///
/// # Safety
/// The caller is that thread, with the GVL, has not borrowed the session, and
/// keeps the GVL while it uses the result.
#[inline]
pub unsafe fn enter<'a>(
    live: &Live,
    state: &ThreadState,
    part: &'a mut GvlPart,
    begin: impl FnOnce(&mut Accounting),
) -> Option<(&'a mut Accounting, &'a mut LastStack)> {
    if !part.placed || live.shares_native_threads {
        // SAFETY: by this function's contract.
        unsafe { place(live, state, part, begin) };
    } else if !native_thread::is_noted(state) {
        is_here(live, state);
    }
    let accounting = part.accounting.as_mut()?;
    if live
        .ticks
        .set_holder(accounting.seq(), state.native_id.load(Relaxed))
    {
        // SAFETY: by this function's contract.
        unsafe { live.inner.try_borrow() }?.session.arm();
    }
    Some((accounting, &mut part.last_stack))
}

/// Makes sure that the thread has an accounting, and that this speaks of the CPU
/// clock of the native thread at hand.
///
/// # Safety
/// As for [`enter`].
#[cold]
unsafe fn place(
    live: &Live,
    state: &ThreadState,
    part: &mut GvlPart,
    begin: impl FnOnce(&mut Accounting),
) {
    let moved = is_here(live, state);
    if moved || !part.placed {
        let cpu = clock::thread_cpu_ns();
        if let Some(accounting) = &mut part.accounting {
            accounting.moved_to_native_thread(cpu);
        // SAFETY: by this function's contract.
        } else if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
            begin(part.accounting.insert(inner.session.new_thread(cpu)));
        }
        part.placed = part.accounting.is_some();
    }
}

/// Notes on which native thread `state`'s thread runs: on this one. Returns
/// whether another Ruby thread ran here before it.
pub fn is_here(live: &Live, state: &ThreadState) -> bool {
    state.native_id.store(native_thread::id(), Relaxed);
    if !live.shares_native_threads {
        state.pthread.store(native_thread::pthread(), Relaxed);
    }
    native_thread::switch_to(state)
}

/// Since when `state`'s thread has been ready to run; 0 if it isn't, or runs.
pub fn ready_since(live: &Live, state: &ThreadState) -> u64 {
    match state.ready_ns.load(Relaxed) {
        0 => live.others_ready.since(state.thread),
        since => since,
    }
}

/// Whose stack to take for the thread of `state`, which is alive. With the GVL.
pub fn whose(state: &ThreadState, is_current: bool) -> Whose {
    if is_current {
        Whose::Current
    } else {
        Whose::Other(state.thread)
    }
}

/// The CPU clock of the thread of `state`, which is alive, if it can be told.
pub fn cpu_clock(live: &Live, state: &ThreadState, is_current: bool) -> Option<u64> {
    if is_current {
        Some(clock::thread_cpu_ns())
    } else if live.shares_native_threads {
        None
    } else {
        clock::thread_cpu_of(state.native_id.load(Relaxed))
    }
}

/// Records at the stack of the running thread what an event at `now` has made due: most
/// make nothing due, and don't come here.
///
/// # Safety
/// The caller is that thread, with the GVL, has not borrowed the session, and the
/// accounting and the last stack are its own.
#[cold]
pub unsafe fn record(
    live: &Live,
    now: u64,
    dues: Dues,
    accounting: &mut Accounting,
    last: &mut LastStack,
) {
    let started = clock::monotonic_ns();
    // SAFETY: by this function's contract.
    unsafe { record_at(live, now, dues, (accounting, last), Whose::Current) };
    // SAFETY: as above.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        let spent = clock::monotonic_ns().saturating_sub(started);
        inner.session.count_sampling(0, spent);
    }
}

/// [`record`] at the part of the stack that is `whose`, for a caller who counts the time
/// that it takes.
///
/// # Safety
/// As for [`record`].
#[cold]
pub unsafe fn record_at(
    live: &Live,
    now: u64,
    dues: Dues,
    (accounting, last): (&mut Accounting, &mut LastStack),
    whose: Whose,
) {
    // SAFETY: by this function's contract.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    let Inner {
        session, scratch, ..
    } = &mut *inner;
    let position = Position {
        stack: capture::take(scratch, whose),
        last,
        // SAFETY: by this function's contract, a Ruby thread with the GVL.
        labels: labels::of_thread(live, unsafe { rb_sys::rb_thread_current() }),
    };
    capture::keep_alive(session.record(now, accounting, dues, position));
}

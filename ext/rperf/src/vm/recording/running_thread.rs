//! The Ruby thread at hand, which has the GVL: its accounting, and the recorder
//! for what an event of its own wants recorded.

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

/// Records what one event of the running thread wants recorded. It borrows the
/// session only then: most events record nothing.
pub struct EventRecorder<'a> {
    live: &'a Live,
    now: u64,
    last: &'a mut LastStack,
    whose: Whose,
    timed: bool,
}

impl<'a> EventRecorder<'a> {
    /// For an event at `now`.
    ///
    /// # Safety
    /// The caller is a Ruby thread with the GVL, which it keeps as long as it
    /// keeps the recorder, and `last` is its own.
    #[inline]
    pub unsafe fn new(live: &'a Live, now: u64, last: &'a mut LastStack) -> Self {
        Self {
            live,
            now,
            last,
            whose: Whose::Current,
            timed: true,
        }
    }

    /// For the sampling callback, which counts its whole time, and the part of the stack
    /// that is `whose`.
    ///
    /// # Safety
    /// As for [`EventRecorder::new`].
    pub unsafe fn for_callback(
        live: &'a Live,
        now: u64,
        last: &'a mut LastStack,
        whose: Whose,
    ) -> Self {
        // SAFETY: by this function's contract.
        let recorder = unsafe { Self::new(live, now, last) };
        Self {
            whose,
            timed: false,
            ..recorder
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut dyn Recorder) -> R) -> Option<R> {
        // SAFETY: by the contract of `new`.
        let mut inner = unsafe { self.live.inner.try_borrow() }?;
        let Inner {
            session, scratch, ..
        } = &mut *inner;
        let started = if self.timed { clock::monotonic_ns() } else { 0 };
        let stack = VmStack::new(scratch, self.whose);
        // SAFETY: by the contract of `new`, a Ruby thread with the GVL.
        let labels = labels::of_thread(self.live, unsafe { rb_sys::rb_thread_current() });
        let result = act(&mut session.recorder(self.now, self.last, labels, stack));
        if self.timed {
            session.count_sampling(0, clock::monotonic_ns().saturating_sub(started));
        }
        Some(result)
    }
}

impl Recorder for EventRecorder<'_> {
    #[cold]
    fn record(&mut self, thread: u32, state: State, values: Values) -> Option<Place> {
        self.with(|recorder| recorder.record(thread, state, values))?
    }

    #[cold]
    fn record_at(&mut self, place: Place, thread: u32, state: State, values: Values) {
        self.with(|recorder| recorder.record_at(place, thread, state, values));
    }

    #[cold]
    fn take_orphaned(&mut self, state: State) -> Values {
        self.with(|recorder| recorder.take_orphaned(state))
            .unwrap_or_default()
    }

    #[cold]
    fn leave_orphaned(&mut self, state: State, values: Values) {
        self.with(|recorder| recorder.leave_orphaned(state, values));
    }
}

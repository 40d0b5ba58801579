//! The VM's events: threads get the GVL and give it up, get ready and end, garbage is collected.
//! Called by the bridge's hooks, on Ruby threads.

use super::RunningSession;
use crate::accounting::{Accounting, Dues};
use crate::clock;
use crate::gc_progress::GcEvent;
use crate::ids::VmThread;
use crate::threads::{GvlPart, ThreadState, UNKNOWN_TURN, native};
use crate::tick_capture::at_work::AtWork;
use crate::vm::Vm;
use std::sync::atomic::Ordering::Relaxed;

impl RunningSession {
    /// `thread`, the calling one, has got the GVL.
    #[inline]
    pub fn resumed(&self, vm: &impl Vm, thread: &ThreadState) {
        let mut ready = thread.ready_ns.load(Relaxed);
        if ready == 0 {
            ready = self.others_ready.since(thread.thread);
            thread.ready_ns.store(ready, Relaxed);
        }
        // READY came on this thread just now, and nobody had the GVL nor took it since:
        // there was no wait. It saves one of three clock readings.
        let free_since = thread.free_since.load(Relaxed);
        let at_once = free_since != UNKNOWN_TURN && !self.ticks.taken_since(free_since as u32);
        let now = if at_once {
            ready
        } else {
            clock::monotonic_ns()
        };
        self.merge_ended_batch(vm.gvl(), now);
        let Some(mut part) = thread.gvl_part(vm.gvl()) else {
            return;
        };
        let part = &mut *part;
        let begin = |accounting: &mut Accounting| {
            accounting.begin_off_gvl(if ready == 0 { now } else { ready });
        };
        let Some(accounting) = self.enter(vm, thread, part, begin) else {
            return;
        };
        let dues = accounting.resumed(now, ready, clock::thread_cpu_ns);
        self.record_own(vm, thread, part, (now, dues));
    }

    /// `thread`, the calling one, is about to give the GVL up.
    #[inline]
    pub fn suspended(&self, vm: &impl Vm, thread: &ThreadState) {
        // Until nobody is known to hold the GVL: what the handler took later would be
        // accounted to a slice that has ended.
        let guard = AtWork::begin(vm.gvl());
        let Some(mut part) = thread.gvl_part(vm.gvl()) else {
            return;
        };
        self.drain(vm, &mut part, &guard);
        // READY can't come before the GVL is given up.
        thread.forget_events();
        self.others_ready.forget(thread.thread);
        if let Some(accounting) = &mut part.accounting {
            accounting.suspended(clock::monotonic_ns());
            self.ticks.clear_holder(accounting.seq());
        }
    }

    /// `thread` wants the GVL. On any native thread, without the GVL.
    ///
    /// # Safety
    /// In a hook.
    #[inline]
    pub unsafe fn ready(&self, thread: VmThread) {
        let now = clock::monotonic_ns();
        // SAFETY: by this function's contract.
        let Some(state) = (unsafe { self.own_state(thread) }) else {
            self.others_ready.note(thread, now);
            return;
        };
        if state.ready_ns.load(Relaxed) == 0 {
            if let Some(free_since) = self.ticks.free_since() {
                state.free_since.store(u64::from(free_since), Relaxed);
            }
            state.ready_ns.store(now, Relaxed);
        }
    }

    /// `thread`, the calling one, has ended, without the GVL; `known` has its state, if it has
    /// been announced.
    ///
    /// # Safety
    /// In a hook.
    pub unsafe fn exited<'a>(
        &self,
        thread: VmThread,
        known: impl FnOnce() -> Option<&'a ThreadState>,
    ) {
        self.others_ready.forget(thread);
        let state = if self.shares_native_threads {
            known()
        } else {
            // One that never ran while there were hooks has nothing to account.
            // SAFETY: by this function's contract.
            unsafe { self.own_state(thread) }
        };
        if let Some(state) = state {
            native::leave();
            self.ended_threads.fetch_add(1, Relaxed);
            state.end.note(clock::thread_cpu_ns());
        }
    }

    /// The state of `thread`, if this is its native thread. Without the GVL, too.
    ///
    /// # Safety
    /// In a hook.
    #[inline]
    unsafe fn own_state<'a>(&self, thread: VmThread) -> Option<&'a ThreadState> {
        // SAFETY: by this function's contract, and no two Ruby threads share this native
        // thread.
        (!self.shares_native_threads).then(|| unsafe { native::last_run(thread) })?
    }

    /// The calling thread collects garbage; `thread` has its state where a piece of work ends.
    /// `is_marking` as for [`GcProgress::advance`](crate::GcProgress::advance).
    pub fn collecting<'a>(
        &self,
        vm: &impl Vm,
        event: GcEvent,
        is_marking: bool,
        thread: impl FnOnce() -> &'a ThreadState,
    ) {
        let now = clock::monotonic_ns();
        if event == GcEvent::Enter {
            self.ticks.begin_collecting(now);
        }
        let tick = self.ticks.last_tick();
        let state = self.state(vm.gvl());
        let ended = state.and_then(|mut state| state.gc.advance(event, now, tick, is_marking));
        if let Some(work) = ended {
            let thread = thread();
            if let Some(mut part) = thread.gvl_part(vm.gvl()) {
                self.collected(vm, thread, &mut part, (now, work));
            }
        }
        if event == GcEvent::Exit {
            self.ticks.end_collecting();
        }
    }

    /// Accounts a piece of garbage collection of `thread`'s, the calling one.
    fn collected(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        part: &mut GvlPart,
        (now, work): (u64, crate::GcWork),
    ) {
        // What the ticks before the collection found comes before it.
        self.drain(vm, part, &AtWork::begin(vm.gvl()));
        let Some(accounting) = &mut part.accounting else {
            return;
        };
        let dues = accounting.collected(work, self.ticks.last_tick());
        self.record_own(vm, thread, part, (now, dues));
        if !self.ticks.has_holder() {
            // It runs though no event said so.
            self.enter(vm, thread, part, |_| ());
        }
    }

    /// Records what is due, if anything is, at the stack of `thread`, the calling one.
    #[inline]
    fn record_own(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        part: &mut GvlPart,
        (now, dues): (u64, Dues),
    ) {
        if !dues.is_empty()
            && let Some(accounting) = &mut part.accounting
        {
            let recorded = (accounting, &mut part.last_stack);
            self.record(vm, thread, (now, dues), recorded);
        }
    }

    /// Notes that `thread`, the calling one, runs here and holds the GVL; wakes the timer
    /// if it rests. Returns the thread's accounting, which `begin` sees if it is new.
    #[inline]
    pub(super) fn enter<'a>(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        part: &'a mut GvlPart,
        begin: impl FnOnce(&mut Accounting),
    ) -> Option<&'a mut Accounting> {
        if !part.is_bound || self.shares_native_threads {
            self.bind_native_thread(vm, thread, part, begin);
        } else if !native::is_noted(thread) {
            is_here(thread);
        }
        let accounting = part.accounting.as_mut()?;
        let native_id = thread.native_id.load(Relaxed);
        if self.ticks.set_holder(accounting.seq(), native_id) {
            self.state(vm.gvl())?.engine.arm();
        }
        Some(accounting)
    }

    /// Makes sure that the thread has an accounting, and that this speaks of the CPU
    /// clock of the native thread at hand.
    #[cold]
    fn bind_native_thread(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        part: &mut GvlPart,
        begin: impl FnOnce(&mut Accounting),
    ) {
        let has_moved = is_here(thread);
        if has_moved || !part.is_bound {
            let cpu = clock::thread_cpu_ns();
            if let Some(accounting) = &mut part.accounting {
                accounting.moved_to_native_thread(cpu);
            } else if let Some(mut state) = self.state(vm.gvl()) {
                begin(part.accounting.insert(state.engine.new_thread(cpu)));
            }
            part.is_bound = part.accounting.is_some();
        }
    }
}

/// Notes on which native thread `thread` runs: on this one. Returns whether another Ruby
/// thread ran here before it.
#[inline]
pub(super) fn is_here(thread: &ThreadState) -> bool {
    thread.native_id.store(native::id(), Relaxed);
    native::switch_to(thread)
}

//! The VM's events: threads get the GVL and give it up, get ready and end, garbage is collected.
//! Called by the bridge's hooks, on Ruby threads.

use super::RunningSession;
use super::due::FollowUp;
use crate::accounting::Accounting;
use crate::threads::{GvlPart, ThreadState, UNKNOWN_TURN, native};
use crate::tick_capture::at_work::AtWork;
use rperf_vm::Waits;
use rperf_vm::{GcEvent, GcMoment, GcPhase, GcWork, Gvl, NativeId, VmThread, clock};
use std::sync::atomic::Ordering::Relaxed;

impl RunningSession {
    /// `thread`, the calling one, has got the GVL.
    #[inline]
    pub fn resumed<'a>(&'a self, gvl: &Gvl<'_>, thread: &'a ThreadState) -> FollowUp<'a> {
        let mut ready = thread.ready_ns.load(Relaxed);
        if ready == 0 {
            ready = self.waits.told_ready(thread.thread);
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
        self.ticks.end_idle_time(now);
        self.merge_ended_batch(gvl, now);
        let Some(mut part) = thread.gvl_part(gvl) else {
            return FollowUp::None;
        };
        let begin = |accounting: &mut Accounting| {
            accounting.begin_off_gvl(if ready == 0 { now } else { ready });
        };
        let was_counted = self.waits.leave(thread.thread, now);
        let Some(accounting) = self.enter(gvl, thread, &mut part, begin) else {
            return FollowUp::None;
        };
        self.end_wait(gvl, was_counted, accounting, ready, now);
        let mut read_ns = None;
        let cpu = || {
            let cpu = clock::thread_cpu_ns();
            read_ns = Some(clock::monotonic_ns());
            cpu
        };
        let dues = accounting.resumed(now, ready, cpu);
        if let Some(read_ns) = read_ns {
            accounting.clock_was_read(read_ns);
        }
        self.end_request_wait(gvl, &part, ready);
        match dues {
            Some(dues) => FollowUp::due(thread, now, dues),
            None => FollowUp::None,
        }
    }

    /// `thread`, the calling one, is about to give the GVL up. `place` tells apart where in the
    /// program it does.
    #[inline]
    pub fn suspended<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        thread: &ThreadState,
        place: impl FnOnce() -> usize,
    ) -> FollowUp<'a> {
        // Until nobody is known to hold the GVL: what the handler took later would be
        // accounted to a slice that has ended.
        let guard = AtWork::begin(gvl);
        let Some(mut part) = thread.gvl_part(gvl) else {
            return FollowUp::None;
        };
        // No tick is taken from here on: what this hook takes belongs to the time off the GVL, whose
        // stack it is.
        let now = clock::monotonic_ns();
        let cpu_due = part
            .accounting
            .as_ref()
            .is_some_and(|it| it.is_cpu_due(now));
        let cpu = cpu_due.then(clock::thread_cpu_ns);
        let has_drained = self.drain(gvl, &mut part, &guard);
        // READY can't come before the GVL is given up.
        thread.forget_events();
        self.waits.forget_ready(thread.thread);
        if let Some(accounting) = &mut part.accounting {
            self.waits.end_blame(thread.thread, now, accounting);
            accounting.suspended(now);
            if let Some(cpu) = cpu {
                accounting.read_cpu(cpu);
            }
            self.ticks.clear_holder(accounting.seq());
        }
        if self.ticks.ask_for_stop(now, place)
            && let Some(state) = self.state(gvl)
        {
            state.engine.stop_ticks(now);
        }
        self.after_drain(gvl, has_drained)
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
            self.waits.begin_told(thread, now);
            return;
        };
        if state.ready_ns.load(Relaxed) == 0 {
            if let Some(free_since) = self.ticks.free_since() {
                state.free_since.store(u64::from(free_since), Relaxed);
            }
            state.ready_ns.store(now, Relaxed);
            self.waits.begin(thread, now);
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
        self.waits.forget_ready(thread);
        let state = if self.shares_native_threads {
            known()
        } else {
            // One that never ran while there were hooks has nothing to account.
            // SAFETY: by this function's contract.
            unsafe { self.own_state(thread) }
        };
        self.waits.forget(thread);
        if let Some(state) = state {
            native::leave();
            self.turnover.note_end();
            state.end.note(clock::thread_cpu_ns());
        } else {
            self.others.exited(&self.ticks.others, thread);
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
    pub fn collecting<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        event: GcEvent,
        phase: GcPhase,
        thread: impl FnOnce() -> &'a ThreadState,
    ) -> FollowUp<'a> {
        let moment = GcMoment::now();
        let now = moment.monotonic_ns;
        if event == GcEvent::Enter {
            self.ticks.begin_collecting(now);
        }
        let tick = self.ticks.last_tick();
        let waits = match event {
            GcEvent::Enter | GcEvent::Exit => self.waits.up_to(now),
            _ => None,
        };
        let state = self.state(gvl);
        let ended = state.and_then(|mut state| {
            if event == GcEvent::Enter {
                state.waits_before_gc = waits;
            }
            let work = state.gc.advance(event, moment, tick, phase)?;
            self.add_collection(&work);
            Some((work, state.waits_before_gc.take().zip(waits)))
        });
        let follow_up = match ended {
            Some((work, waits)) => self.collected(gvl, thread(), now, work, waits),
            None => FollowUp::None,
        };
        if event == GcEvent::Exit {
            self.ticks.end_collecting();
        }
        follow_up
    }

    /// Adds a piece of collection to what the session tells of them.
    pub(super) fn add_collection(&self, work: &GcWork) {
        self.gc.add(work, self.mode);
    }

    /// Accounts a piece of garbage collection of `thread`'s, the calling one, with the waits for the
    /// GVL before and after it, if these are known.
    fn collected<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        thread: &'a ThreadState,
        now: u64,
        work: GcWork,
        waits: Option<(Waits, Waits)>,
    ) -> FollowUp<'a> {
        let Some(mut part) = thread.gvl_part(gvl) else {
            return FollowUp::None;
        };
        // What the ticks before the collection found comes before it.
        let has_drained = self.drain(gvl, &mut part, &AtWork::begin(gvl));
        let Some(accounting) = &mut part.accounting else {
            return self.after_drain(gvl, has_drained);
        };
        if let Some((before, after)) = waits {
            self.waits.hold_since(before, accounting);
            accounting.blame_collection(before, after, &work);
        }
        let dues = accounting.collected(work, self.ticks.last_tick());
        if !self.ticks.has_holder() {
            // It runs though no event said so.
            self.enter(gvl, thread, &mut part, |_| ());
        }
        if dues.is_empty() {
            return self.after_drain(gvl, has_drained);
        }
        FollowUp::due(thread, now, dues)
    }

    /// Notes that `thread`, the calling one, runs here and holds the GVL; wakes the timer
    /// if it rests. Returns the thread's accounting, which `begin` sees if it is new.
    #[inline]
    pub(super) fn enter<'a>(
        &self,
        gvl: &Gvl<'_>,
        thread: &ThreadState,
        part: &'a mut GvlPart,
        begin: impl FnOnce(&mut Accounting),
    ) -> Option<&'a mut Accounting> {
        if !part.is_bound || self.shares_native_threads {
            self.bind_native_thread(gvl, thread, part, begin);
        } else if !native::is_noted(thread) {
            is_here(thread);
        }
        let accounting = part.accounting.as_mut()?;
        let native_id = NativeId(thread.native_id.load(Relaxed));
        if self.ticks.set_holder(accounting.seq(), native_id) {
            self.state(gvl)?.engine.arm();
        }
        Some(accounting)
    }

    /// Makes sure that the thread has an accounting, and that this speaks of the CPU
    /// clock of the native thread at hand.
    #[cold]
    fn bind_native_thread(
        &self,
        gvl: &Gvl<'_>,
        thread: &ThreadState,
        part: &mut GvlPart,
        begin: impl FnOnce(&mut Accounting),
    ) {
        let has_moved = is_here(thread);
        if has_moved || !part.is_bound {
            let cpu = clock::thread_cpu_ns();
            if let Some(accounting) = &mut part.accounting {
                accounting.moved_to_native_thread(cpu);
            } else if let Some(mut state) = self.state(gvl) {
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
    thread.native_id.store(native::id().0, Relaxed);
    native::switch_to(thread)
}

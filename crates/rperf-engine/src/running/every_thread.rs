//! All threads of a session: they begin to be accounted, are brought up to now, and those that
//! have ended are merged. With the GVL.

use super::events::is_here;
use super::stacks::{self, Whose};
use super::{GvlState, RunningSession};
use crate::accounting::{Accounting, Dues};
use crate::clock;
use crate::gc_progress::GcProgress;
use crate::gvl::Gvl;
use crate::labels::LabelSet;
use crate::mode::Mode;
use crate::threads::{GvlPart, ThreadState, native};
use crate::vm::Vm;
use std::sync::atomic::Ordering::Relaxed;

/// Ended threads that are left until they are merged together.
const ENDED_BATCH: usize = 32;

impl RunningSession {
    /// A section is about to begin at `now`. `has_ended` knows which threads have ended
    /// unnoticed.
    pub fn begin_section(&self, gvl: &Gvl<'_>, now: u64, has_ended: impl Fn(&ThreadState) -> bool) {
        self.ticks.go_on();
        if let Some(mut state) = self.state(gvl) {
            self.merge_ended(gvl, &mut state, now);
            state.merge(gvl, now, has_ended);
            state.gc = GcProgress::default();
        }
    }

    /// Accounts `thread` from `now` on: the calling one runs, others don't.
    pub fn begin_thread(&self, vm: &impl Vm, thread: &ThreadState, now: u64) {
        thread.forget_events();
        let (Some(mut state), Some(mut part)) = (self.state(vm.gvl()), thread.gvl_part(vm.gvl()))
        else {
            return;
        };
        let is_current = thread.thread == vm.current_thread();
        // Another thread's clock is dear to read. Where it isn't read, it is when
        // the thread next gets the GVL.
        let reads_clock = is_current || self.mode == Mode::Cpu;
        let cpu = reads_clock.then(|| self.cpu_clock(thread, is_current));
        let cpu = cpu.flatten();
        if cpu.is_none() {
            thread.native_id.store(0, Relaxed);
        }
        part.is_bound = cpu.is_some();
        // Between sections nothing tells of switches of fibers.
        part.fiber_labels = self.labels_of(vm, thread).map(LabelSet::share);
        let base = cpu.unwrap_or(0);
        let accounting = match &mut part.accounting {
            Some(accounting) => {
                accounting.moved_to_native_thread(base);
                accounting
            }
            none => none.insert(state.engine.new_thread(base)),
        };
        if is_current {
            is_here(thread);
            accounting.begin_running(now);
            if self.ticks.set_holder(accounting.seq(), native::id()) {
                state.engine.arm();
            }
        } else {
            accounting.begin_off_gvl(now);
        }
    }

    /// The last section has ended, and no hook is at work any more: all threads are brought up
    /// to that moment.
    pub fn end_section(&self, vm: &impl Vm) {
        let now = clock::monotonic_ns();
        self.sections.note_end(now);
        let Some(mut state) = self.state(vm.gvl()) else {
            return;
        };
        // The others that were in this section are alive: its end would have been an EXITED.
        self.merge_ended(vm.gvl(), &mut state, now);
        // One for whom this section didn't count may have ended unnoticed before it.
        let counts = |accounting: &Accounting| accounting.counts();
        self.each_thread(
            vm,
            &mut state,
            now,
            counts,
            |accounting, thread, is_current| {
                let ready = self.ready_since(thread);
                accounting.pause(now, ready, || self.cpu_clock(thread, is_current))
            },
        );
    }

    /// Brings every thread up to now, which is returned, and records all remainders. `None`
    /// inside of a callback. `has_ended` knows which threads have ended unnoticed.
    pub fn flush(&self, vm: &impl Vm, has_ended: impl Fn(&ThreadState) -> bool) -> Option<u64> {
        let mut state = self.state(vm.gvl())?;
        let now = clock::monotonic_ns();
        self.merge_ended(vm.gvl(), &mut state, now);
        state.merge(vm.gvl(), now, has_ended);
        // Between sections no time counts, CPU time neither.
        let is_open = self.sections.are_open();
        self.each_thread(
            vm,
            &mut state,
            now,
            |_| true,
            |accounting, thread, is_current| {
                let cpu = || self.cpu_clock(thread, is_current);
                let cpu = is_open.then(cpu).flatten();
                accounting.flush(now, self.ready_since(thread), cpu)
            },
        );
        state.engine.flush_orphaned(now);
        Some(now)
    }

    /// Calls `act` for every accounted thread that `which` accepts, and records what that makes
    /// due. `which` must reject threads that may have ended.
    fn each_thread(
        &self,
        vm: &impl Vm,
        state: &mut GvlState,
        now: u64,
        which: impl Fn(&Accounting) -> bool,
        mut act: impl FnMut(&mut Accounting, &ThreadState, bool) -> Dues,
    ) {
        let current = vm.current_thread();
        let GvlState {
            engine,
            threads,
            backtrace,
            ..
        } = state;
        for thread in threads.iter() {
            let Some(mut part) = thread.gvl_part(vm.gvl()) else {
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
            let dues = act(accounting, thread, is_current);
            if dues.is_empty() {
                continue;
            }
            let whose = if is_current {
                Whose::Current
            } else {
                Whose::Other
            };
            let tables = (&mut *engine, &mut *backtrace);
            let recorded = (accounting, last_stack);
            stacks::record(vm, self, tables, (thread, whose), (now, dues), recorded);
        }
    }

    /// Since when `thread` has been ready to run; 0 if it isn't, or runs.
    fn ready_since(&self, thread: &ThreadState) -> u64 {
        match thread.ready_ns.load(Relaxed) {
            0 => self.others_ready.since(thread.thread),
            since => since,
        }
    }

    /// The CPU clock of `thread`, which is alive, if it is known.
    fn cpu_clock(&self, thread: &ThreadState, is_current: bool) -> Option<u64> {
        if is_current {
            Some(clock::thread_cpu_ns())
        } else if self.shares_native_threads {
            None
        } else {
            clock::thread_cpu_of(thread.native_id.load(Relaxed))
        }
    }

    /// [`RunningSession::merge_ended`], once there are enough of them. The caller holds no
    /// thread's part.
    #[inline]
    pub(super) fn merge_ended_batch(&self, gvl: &Gvl<'_>, now: u64) {
        if self.ended_threads.load(Relaxed) >= ENDED_BATCH
            && let Some(mut state) = self.state(gvl)
        {
            self.merge_ended(gvl, &mut state, now);
        }
    }

    /// Takes in threads that have been announced, and accounts those that ended.
    fn merge_ended(&self, gvl: &Gvl<'_>, state: &mut GvlState, now: u64) {
        self.new_threads.take_into(&mut state.threads);
        let merged = state.merge(gvl, now, |thread| thread.end.has_come());
        self.ended_threads.fetch_sub(merged, Relaxed);
    }
}

impl GvlState {
    /// Accounts the threads of which `has_ended` says so, and lets go of their states. Returns
    /// how many there were.
    fn merge(
        &mut self,
        gvl: &Gvl<'_>,
        now: u64,
        has_ended: impl Fn(&ThreadState) -> bool,
    ) -> usize {
        let before = self.threads.len();
        self.threads.retain(|thread| {
            if !has_ended(thread) {
                return true;
            }
            let Some(mut part) = thread.gvl_part(gvl) else {
                return true;
            };
            if let Some(accounting) = &mut part.accounting {
                // Not known if its EXITED was missed.
                self.engine
                    .finish_thread(now, accounting, thread.end.cpu_ns());
            }
            false
        });
        before - self.threads.len()
    }

    /// How many threads are accounted.
    pub fn accounted_threads(&self, gvl: &Gvl<'_>) -> usize {
        let parts = self.threads.iter().filter_map(|it| it.gvl_part(gvl));
        parts.filter(|part| part.accounting.is_some()).count()
    }

    /// Lets all threads forget their stacks, and where their last samples went: the call
    /// tree is another one.
    pub fn forget_places(&mut self, gvl: &Gvl<'_>) {
        for thread in &self.threads {
            let Some(mut part) = thread.gvl_part(gvl) else {
                debug_assert!(false, "a thread's part is borrowed while the tree changes");
                continue;
            };
            part.last_stack.keep(0);
            if let Some(accounting) = &mut part.accounting {
                accounting.forget_places();
            }
        }
    }
}

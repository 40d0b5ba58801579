//! All threads of a session: they begin to be accounted, are brought up to now, and those that
//! have ended are merged. With the GVL.

use super::due::Wanted;
use super::events::is_here;
use super::{GvlState, RunningSession};
use crate::accounting::Dues;
use crate::recording::NotedLabels;
use crate::threads::{ThreadState, native};
use crate::tick_capture::at_work::AtWork;
use rperf_model::Mode;
use rperf_vm::{FiberWord, GcProgress, Gvl, LabelSet, NativeId, VmThread, clock};
use std::sync::atomic::Ordering::Relaxed;

/// All threads, which are brought up to one moment as they come: those on which something is
/// due. Each is to be recorded before the next one is asked for, and nothing else may happen
/// between the first and the last. If time runs out, the rest is left as it is.
#[derive(Debug)]
#[must_use = "threads are brought up to now as they come"]
pub struct EveryThread<'a> {
    session: &'a RunningSession,
    gvl: &'a Gvl<'a>,
    current: VmThread,
    /// The moment, on the monotonic clock.
    pub now_ns: u64,
    up_to: UpTo,
    /// The row of the next thread.
    row: usize,
    /// When time runs out, on the monotonic clock.
    until_ns: u64,
    is_complete: bool,
}

/// What comes after the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UpTo {
    /// Time goes on, or the session ends: all remainders are due.
    Flush,
    /// Time goes on, and somebody watches: all remainders are due.
    Watched,
    /// No time counts.
    SectionEnd,
}

impl RunningSession {
    /// A section is about to begin at `now`. `has_ended` knows which threads have ended
    /// unnoticed.
    pub fn begin_section(&self, gvl: &Gvl<'_>, now: u64, has_ended: impl Fn(&ThreadState) -> bool) {
        self.ticks.go_on();
        self.others.begin(now);
        self.waits.clear(now);
        if let Some(mut state) = self.state(gvl) {
            self.merge_ended(gvl, &mut state, now);
            state.merge(gvl, now, has_ended);
            state.gc = GcProgress::default();
        }
    }

    /// Accounts `thread` from `now` on: the calling one (`is_current`) runs, others don't. Its
    /// present fiber has these labels.
    pub fn begin_thread(
        &self,
        gvl: &Gvl<'_>,
        thread: &ThreadState,
        is_current: bool,
        labels: Option<&LabelSet>,
        now: u64,
    ) {
        thread.forget_events();
        self.waits.forget_ready(thread.thread);
        let (Some(mut state), Some(mut part)) = (self.state(gvl), thread.gvl_part(gvl)) else {
            return;
        };
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
        let noted = NotedLabels {
            fiber: FiberWord::default(),
            set: labels,
        };
        thread.note_labels(&mut part, noted);
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
            self.waits.begin_blame(accounting);
            if self.ticks.set_holder(accounting.seq(), native::id()) {
                state.engine.arm();
            }
        } else {
            accounting.begin_off_gvl(now);
        }
    }

    /// The last section has ended, and no hook is at work any more: all threads are brought up
    /// to that moment. `current` is the calling thread.
    pub fn end_section<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        current: VmThread,
    ) -> impl Iterator<Item = Wanted<'a>> {
        let now = clock::monotonic_ns();
        self.sections.note_end(now);
        // Some may have got their GVL since the ticks ended: their handlers may be at work.
        self.ticks.others.clear();
        self.others.pause(now, &self.waits.others_ready);
        let threads = self.state(gvl).map(|mut state| {
            // The others that were in this section are alive: its end would have been an EXITED.
            self.merge_ended(gvl, &mut state, now);
            self.every_thread(gvl, current, now, UpTo::SectionEnd)
        });
        threads.into_iter().flatten()
    }

    /// Brings the threads from row `from` on up to now, and records all remainders, for
    /// `limit_ns` at most. `None` inside of a callback.
    /// `current` is the calling thread; `has_ended` knows which ones have ended unnoticed.
    pub fn flush<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        current: VmThread,
        has_ended: impl Fn(&ThreadState) -> bool,
        from: usize,
        limit_ns: u64,
    ) -> Option<EveryThread<'a>> {
        let mut state = self.state(gvl)?;
        let now = clock::monotonic_ns();
        self.waits.count_unheld(&mut state.engine);
        self.merge_ended(gvl, &mut state, now);
        state.merge(gvl, now, has_ended);
        Some(EveryThread {
            row: from,
            // After what has been merged, which may take long.
            until_ns: clock::monotonic_ns().saturating_add(limit_ns),
            ..self.every_thread(gvl, current, now, UpTo::Flush)
        })
    }

    /// Does what [`RunningSession::flush`] does in an open section, for somebody who watches:
    /// `limit_ns` is short, and nothing is known of threads that have ended unnoticed. So threads
    /// are left out that have not been seen in this section.
    pub fn flush_seen<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        current: VmThread,
        from: usize,
        limit_ns: u64,
    ) -> Option<EveryThread<'a>> {
        let mut state = self.state(gvl)?;
        let now = clock::monotonic_ns();
        self.merge_ended(gvl, &mut state, now);
        Some(EveryThread {
            row: from,
            until_ns: clock::monotonic_ns().saturating_add(limit_ns),
            ..self.every_thread(gvl, current, now, UpTo::Watched)
        })
    }

    fn every_thread<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        current: VmThread,
        now_ns: u64,
        up_to: UpTo,
    ) -> EveryThread<'a> {
        EveryThread {
            session: self,
            gvl,
            current,
            now_ns,
            up_to,
            row: 0,
            until_ns: u64::MAX,
            is_complete: false,
        }
    }

    /// Brings `thread` up to `now`. Returns what that makes due.
    fn bring_up(
        &self,
        gvl: &Gvl<'_>,
        thread: &ThreadState,
        is_current: bool,
        now: u64,
        up_to: UpTo,
    ) -> Option<Dues> {
        let mut part = thread.gvl_part(gvl)?;
        let accounting = part.accounting.as_mut()?;
        self.waits.blame_up_to(now, accounting);
        let ready = self.ready_since(thread);
        let cpu = || self.cpu_clock(thread, is_current);
        match up_to {
            UpTo::Flush => {
                // Between sections no time counts, CPU time neither.
                let is_open = self.sections.are_open();
                let cpu = is_open.then(cpu).flatten();
                Some(accounting.flush(now, ready, cpu))
            }
            // As for the end of a section.
            UpTo::Watched => accounting
                .counts()
                .then(|| accounting.flush(now, ready, cpu())),
            // One for whom this section didn't count may have ended unnoticed before it.
            UpTo::SectionEnd => accounting
                .counts()
                .then(|| accounting.pause(now, ready, cpu)),
        }
    }

    /// Since when `thread` has been ready to run; 0 if it isn't, or runs.
    pub(super) fn ready_since(&self, thread: &ThreadState) -> u64 {
        match thread.ready_ns.load(Relaxed) {
            0 => self.waits.told_ready(thread.thread),
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
            clock::thread_cpu_of(NativeId(thread.native_id.load(Relaxed)))
        }
    }

    /// Begins to end the epoch, if it is over: all threads forget their stacks, and the frames
    /// wait for their names. Returns whether it is.
    pub fn begin_epoch_end(&self, gvl: &Gvl<'_>) -> bool {
        let Some(mut state) = self.state(gvl) else {
            return false;
        };
        let is_over = state.engine.is_epoch_over(clock::monotonic_ns());
        if is_over {
            self.turnover.new.take_into(&mut state.threads);
            state.engine.begin_epoch_end();
            state.forget_points(gvl);
            self.forget_learned(&AtWork::begin(gvl));
        }
        is_over
    }

    /// [`RunningSession::merge_ended`], once there are enough of them. The caller holds no
    /// thread's part.
    #[inline]
    pub(super) fn merge_ended_batch(&self, gvl: &Gvl<'_>, now: u64) {
        if self.turnover.is_batch()
            && let Some(mut state) = self.state(gvl)
        {
            self.merge_ended(gvl, &mut state, now);
        }
    }

    /// Takes in threads that have been announced, and accounts those that ended.
    fn merge_ended(&self, gvl: &Gvl<'_>, state: &mut GvlState, now: u64) {
        self.turnover.new.take_into(&mut state.threads);
        let merged = state.merge(gvl, now, |thread| thread.end.has_come());
        self.turnover.note_merged(merged);
    }
}

impl EveryThread<'_> {
    /// The row of the first thread for which there was no time; `None` if all are up to now.
    /// Rows change as threads end: one may be left out by who goes on from here.
    pub fn next_row(&self) -> Option<usize> {
        (!self.is_complete).then_some(self.row)
    }
}

impl<'a> Iterator for EveryThread<'a> {
    type Item = Wanted<'a>;

    fn next(&mut self) -> Option<Wanted<'a>> {
        let (gvl, now) = (self.gvl, self.now_ns);
        let mut state = self.session.state(gvl)?;
        while let Some(thread) = state.threads.get(self.row) {
            let row = self.row;
            if self.until_ns != u64::MAX && clock::monotonic_ns() >= self.until_ns {
                return None;
            }
            self.row += 1;
            let is_current = thread.thread == self.current;
            let dues = self
                .session
                .bring_up(gvl, thread, is_current, now, self.up_to);
            if let Some(dues) = dues.filter(|dues| !dues.is_empty()) {
                return Some(Wanted::of_row(row, thread.thread, is_current, now, dues));
            }
        }
        if self.up_to == UpTo::Flush {
            state.engine.flush_unattributed(now);
        }
        self.is_complete = true;
        None
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
    pub fn forget_points(&mut self, gvl: &Gvl<'_>) {
        for thread in &self.threads {
            let Some(mut part) = thread.gvl_part(gvl) else {
                debug_assert!(false, "a thread's part is borrowed while the tree changes");
                continue;
            };
            part.last_stack.keep(0);
            if let Some(accounting) = &mut part.accounting {
                accounting.forget_points();
            }
        }
    }
}

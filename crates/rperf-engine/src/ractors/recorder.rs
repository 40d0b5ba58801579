//! What is recorded of one thread of another Ractor. Its hooks and its signal handler run on the
//! thread, with its Ractor's GVL; the main Ractor and the worker come from other threads. So each
//! takes the recorder for the moment of its work, and none of the first two waits for it.

use super::ThreadSlot;
use super::merged::Merged;
use super::missed_events::{MissedEvent, MissedEvents};
use crate::accounting::{Accounting, Dues, SamplePoint};
use crate::backtrace::Backtrace;
use crate::call_tree::{CapturedTree, FrameWord, LastStack};
use crate::clock;
use crate::gc_progress::{GcEvent, GcMoment, GcProgress};
use crate::ids::VmThread;
use crate::mode::Mode;
use crate::pace::Pace;
use crate::recording::{Position, Recording, Sink};
use crate::sample::{Sample, SampleSums, SumLimits};
use crate::threads::ThreadEnd;
use crate::tick_capture::{TickLog, TickTimes};
use crate::vm::VmFrames;
use rperf_model::{LabelSetId, NodeId, State};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Frames of a stack that are kept, those nearest to the leaf: there may be many Ractors.
const DEPTH: usize = 2048;

/// Words of the log: 64 kB. The worker empties it some times a second.
const LOG_WORDS: usize = 1 << 13;

/// Nodes that the call tree holds at most.
const NODE_CAP: usize = 1 << 20;

/// What a recorder holds is let go of when it is taken out, from here on.
const LARGE_TREE: usize = 1 << 12;

/// In place of a place: it doesn't run.
const NOWHERE: usize = usize::MAX;

/// In place of a place: it runs, and has found none.
const WITHOUT_PLACE: usize = usize::MAX - 1;

/// What all recorders of a session have in common.
#[derive(Debug, Clone, Copy)]
pub struct RecorderConfig {
    /// What the weights measure.
    pub mode: Mode,
    /// Mean gap between samples in ns.
    pub interval: u64,
    /// Whether stacks have lines.
    pub with_lines: bool,
    /// How samples are kept.
    pub limits: SumLimits,
}

/// The recorder of a thread.
#[derive(Debug)]
pub struct Recorder {
    /// The thread; only compared.
    pub thread: VmThread,
    /// Its end.
    pub end: ThreadEnd,
    /// The number of its Ractor; 0 if not known.
    ractor: u32,
    /// What leads here from the thread. It lives as long as the thread or this, whichever lives
    /// longer.
    pub slot: &'static ThreadSlot,
    is_busy: AtomicBool,
    /// Where it runs, in [`OtherHolders`](crate::other_holders::OtherHolders).
    place: AtomicUsize,
    last_place: AtomicUsize,
    missed: MissedEvents,
    recording: UnsafeCell<ThreadRecording>,
}

// SAFETY: only who has taken the recorder gets at `recording`, by a flag that is set with Acquire
// and given back with Release; the rest is atomics.
unsafe impl Sync for Recorder {}

/// What only who has taken the recorder may touch.
#[derive(Debug)]
pub struct ThreadRecording {
    config: RecorderConfig,
    accounting: Accounting,
    recording: Recording<Sums>,
    last: LastStack,
    backtrace: Backtrace,
    log: TickLog,
    /// The native thread whose CPU clock the accounting knows; 0 if none.
    native_id: u32,
    gc: GcProgress,
    /// Nothing was told of the thread before its first event.
    is_new: bool,
    /// Where it gave the GVL up, if the stack was taken then, and when that was done last.
    off_at: Option<SamplePoint>,
    off_taken_ns: u64,
    unreadable: u64,
    spent_ns: u64,
}

/// Sums samples.
#[derive(Debug)]
struct Sums {
    sums: SampleSums,
    limits: SumLimits,
}

impl Sink for Sums {
    fn push(&mut self, sample: Sample) -> bool {
        self.sums.add(&[sample], self.limits);
        false
    }
}

/// A recorder that was taken.
#[derive(Debug)]
pub struct Taken<'a>(&'a Recorder);

impl Deref for Taken<'_> {
    type Target = ThreadRecording;

    fn deref(&self) -> &ThreadRecording {
        // SAFETY: the flag makes this the only one.
        unsafe { &*self.0.recording.get() }
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut ThreadRecording {
        // SAFETY: as for `deref`; `&mut self` excludes other references from it.
        unsafe { &mut *self.0.recording.get() }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Release);
    }
}

impl Recorder {
    /// For a thread of which nothing is known yet, which has the number `seq` in the profile.
    pub fn new(
        (thread, slot): (VmThread, &'static ThreadSlot),
        ractor: u32,
        (seq, seed): (u32, u64),
        config: RecorderConfig,
        pace: &Arc<Pace>,
    ) -> Box<Self> {
        let accounting = Accounting::new(seq, config.mode, pace, 0, seed);
        let sums = Sums {
            sums: SampleSums::default(),
            limits: config.limits,
        };
        let mut recording = Recording::new(NODE_CAP, sums);
        recording.counters.threads = 1;
        let merges = config.limits.aggregate;
        Box::new(Recorder {
            thread,
            end: ThreadEnd::default(),
            ractor,
            slot,
            is_busy: AtomicBool::new(false),
            place: AtomicUsize::new(NOWHERE),
            last_place: AtomicUsize::new(0),
            missed: MissedEvents::default(),
            recording: UnsafeCell::new(ThreadRecording {
                config,
                accounting,
                recording,
                last: LastStack::default(),
                backtrace: Backtrace::with_room(DEPTH, config.with_lines),
                log: TickLog::with_room(LOG_WORDS, DEPTH + 1, config.with_lines, merges),
                native_id: 0,
                gc: GcProgress::default(),
                is_new: true,
                off_at: None,
                off_taken_ns: 0,
                unreadable: 0,
                spent_ns: 0,
            }),
        })
    }

    /// Takes the recorder, unless somebody else has it.
    #[inline]
    fn try_take(&self) -> Option<Taken<'_>> {
        let is_taken = self.is_busy.compare_exchange(false, true, Acquire, Relaxed);
        // Made only then: dropped, it would give the recorder back.
        is_taken.is_ok().then(|| Taken(self))
    }

    /// Takes the recorder as soon as it is free: its thread has it for microseconds. Not on that
    /// thread.
    pub fn take(&self) -> Taken<'_> {
        loop {
            match self.try_take() {
                Some(taken) => return taken,
                None => std::thread::yield_now(),
            }
        }
    }

    /// The signal handler had it, and has faulted. Async-signal-safe.
    pub fn give_up(&self) {
        self.is_busy.store(false, Release);
    }

    /// It doesn't run any more. Returns whether it did, and its place, if it had one.
    pub fn leave_place(&self) -> Option<Option<usize>> {
        match self.place.swap(NOWHERE, Relaxed) {
            NOWHERE => None,
            WITHOUT_PLACE => Some(None),
            place => Some(Some(place)),
        }
    }

    /// It runs, in this place if there was one.
    pub fn set_place(&self, place: Option<usize>) {
        self.place.store(place.unwrap_or(WITHOUT_PLACE), Relaxed);
        self.last_place.store(place.unwrap_or(0), Relaxed);
    }

    /// Where it ran last.
    pub fn last_place(&self) -> usize {
        self.last_place.load(Relaxed)
    }

    /// The thread, which is calling, has got its Ractor's GVL at `now`; it was ready since `ready`,
    /// or 0. Since `began_ns` time counts. `has_moved`: it ran on another native thread before, or
    /// another thread on this one.
    pub fn resumed(
        &self,
        vm: &impl VmFrames,
        (ready, now): (u64, u64),
        began_ns: u64,
        has_moved: bool,
    ) {
        let Some(mut taken) = self.try_take() else {
            self.missed.push(MissedEvent::Resumed(now, ready));
            return;
        };
        taken.catch_up(&self.missed, began_ns);
        if has_moved || taken.native_id == 0 {
            taken
                .accounting
                .moved_to_native_thread(clock::thread_cpu_ns());
            taken.native_id = crate::threads::native::id();
        }
        let dues = taken.resumed(now, ready, began_ns, clock::thread_cpu_ns);
        if let Some(dues) = dues {
            taken.record(vm, now, dues);
        }
    }

    /// The thread, which is calling, is about to give its Ractor's GVL up.
    pub fn suspended(&self, vm: &impl VmFrames, began_ns: u64) {
        let Some(mut taken) = self.try_take() else {
            self.missed
                .push(MissedEvent::Suspended(clock::monotonic_ns()));
            return;
        };
        taken.catch_up(&self.missed, began_ns);
        let now = clock::monotonic_ns();
        taken.suspended(now, began_ns);
        taken.note_stack(vm, now);
    }

    /// The thread, which is calling, collects garbage; `tick` and `is_marking` as for
    /// [`GcProgress::advance`].
    pub fn collecting(
        &self,
        vm: &impl VmFrames,
        event: GcEvent,
        (tick, is_marking): (u64, bool),
        began_ns: u64,
    ) {
        let Some(mut taken) = self.try_take() else {
            return;
        };
        let moment = GcMoment::now();
        let now = moment.monotonic_ns;
        let Some(work) = taken.gc.advance(event, moment, tick, is_marking) else {
            return;
        };
        taken.catch_up(&self.missed, began_ns);
        if !taken.accounting.counts() {
            taken.is_new = false;
            taken.accounting.begin_running(began_ns);
        }
        let dues = taken.accounting.collected(work, tick);
        if !dues.is_empty() {
            taken.record(vm, now, dues);
        }
    }

    /// The handler: takes the stack of the thread, which is calling, on native thread `native_id`,
    /// for the tick at `tick_ns`. If it faults it doesn't return, and [`Recorder::give_up`] must be
    /// called.
    ///
    /// # Safety
    /// The thread has its Ractor's GVL, and nobody moves objects.
    pub unsafe fn take_stack(&self, vm: &impl VmFrames, native_id: u32, tick_ns: u64) {
        // Events that nobody has seen yet come before the tick.
        if let Some(mut taken) = self.try_take()
            && self.missed.are_none()
        {
            // SAFETY: by this function's contract.
            unsafe { taken.take_stack(vm, native_id, tick_ns) };
        }
    }

    /// Makes samples of what the log has. On the worker.
    pub fn empty_log(&self, began_ns: u64) {
        if let Some(mut taken) = self.try_take() {
            taken.catch_up(&self.missed, began_ns);
        }
    }

    /// Brings the thread up to `now`, and moves what is recorded of it to `merged`.
    pub fn move_to(&self, merged: &mut Merged, now: u64, ready: u64, began_ns: u64) {
        let mut taken = self.take();
        taken.catch_up(&self.missed, began_ns);
        let dues = match self.end.cpu_ns() {
            Some(_) => taken.accounting.finish(None),
            None => taken.accounting.flush(now, ready, None),
        };
        taken.leave(now, dues);
        if self.end.has_come() && taken.accounting.was_sampled() {
            let ended = Sample::thread_ended(taken.accounting.seq());
            taken.recording.buffer.push(ended);
        }
        if !self.end.has_come() {
            taken.leave_unattributed(now);
        }
        taken.move_to(merged, self.ractor);
    }

    /// No time counts from `now` on, until the thread's next event in a section.
    pub fn pause(&self, now: u64, ready: u64, began_ns: u64) {
        let mut taken = self.take();
        taken.catch_up(&self.missed, began_ns);
        let dues = taken.accounting.pause(now, ready, || None);
        taken.leave(now, dues);
        taken.native_id = 0;
        taken.gc = GcProgress::default();
        self.place.store(NOWHERE, Relaxed);
    }

    /// Hands out all words that may be objects, for the garbage collector.
    pub fn each_root(&self, mut mark: impl FnMut(FrameWord)) {
        let taken = self.take();
        taken.log.frames().for_each(&mut mark);
        taken.recording.tree.frames().iter().copied().for_each(mark);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let taken = self.take();
        size_of::<Self>()
            + taken.backtrace.memory()
            + taken.log.memory()
            + taken.recording.tree.memory()
            + taken.recording.buffer.sums.memory()
    }
}

impl ThreadRecording {
    /// Takes in what came before: the stacks of ticks, and then what was missed, as there are no
    /// stacks while something is missed.
    fn catch_up(&mut self, missed: &MissedEvents, began_ns: u64) {
        self.make_samples();
        while let Some(event) = missed.take() {
            match event {
                MissedEvent::Resumed(now, ready) => {
                    let cpu = self.accounting.cpu_estimate();
                    let dues = self.resumed(now, ready, began_ns, || cpu);
                    self.native_id = 0;
                    if let Some(dues) = dues {
                        self.leave(now, dues);
                    }
                }
                MissedEvent::Suspended(now) => {
                    self.suspended(now, began_ns);
                    self.off_at = None;
                }
            }
        }
    }

    fn make_samples(&mut self) {
        if self.log.is_empty() {
            return;
        }
        let began = clock::monotonic_ns();
        let (ticks, _) =
            self.recording
                .replay(&mut self.log, &mut self.accounting, &mut self.last, None);
        let spent = self.spent_ns + clock::monotonic_ns().saturating_sub(began);
        let counters = &mut self.recording.counters;
        counters.sampling_count += ticks;
        counters.sampling_time_ns += spent;
        counters.capture.tick_stacks += ticks;
        counters.capture.unreadable_stacks += self.unreadable;
        (self.unreadable, self.spent_ns) = (0, 0);
    }

    fn resumed(
        &mut self,
        now: u64,
        ready: u64,
        began_ns: u64,
        cpu: impl FnOnce() -> u64,
    ) -> Option<Dues> {
        let is_new = std::mem::replace(&mut self.is_new, false);
        if !self.accounting.counts() {
            let since = if is_new { ready } else { began_ns };
            let since = if since == 0 { now } else { since };
            self.accounting.begin_off_gvl(since);
        }
        // An event was lost: it has run until now.
        self.accounting.suspended(now);
        self.accounting.resumed(now, ready, cpu)
    }

    fn suspended(&mut self, now: u64, began_ns: u64) {
        self.is_new = false;
        if !self.accounting.counts() {
            // It had the GVL when time began to count, and no event has told of it.
            self.accounting.begin_running(began_ns);
        }
        self.accounting.suspended(now);
    }

    /// Takes the stack at which the thread gives the GVL up, once in an interval: one that waits
    /// for long is in the profile with its own stack, though nobody else can take it.
    fn note_stack(&mut self, vm: &impl VmFrames, now: u64) {
        self.off_at = None;
        let is_wanted = self.config.mode == Mode::Wall
            && now.saturating_sub(self.off_taken_ns) >= self.config.interval;
        if is_wanted {
            self.off_taken_ns = now;
            let depth = self.backtrace.take(vm);
            let stack = self.backtrace.stack(depth);
            let interned = self.recording.intern(stack, &mut self.last);
            self.off_at = Some(SamplePoint {
                node: interned.node,
                labels: LabelSetId::default(),
            });
        }
    }

    /// Records what is due on the calling thread at its stack.
    #[cold]
    fn record(&mut self, vm: &impl VmFrames, now: u64, dues: Dues) {
        let began = clock::monotonic_ns();
        let depth = self.backtrace.take(vm);
        let position = Position {
            stack: Some(self.backtrace.stack(depth)),
            last: &mut self.last,
            labels: None,
        };
        self.recording
            .record(now, &mut self.accounting, dues, position);
        self.recording.counters.sampling_time_ns += clock::monotonic_ns().saturating_sub(began);
    }

    /// Records what is due at the stacks that are known: those of the last samples, or where the
    /// thread gave the GVL up. Without one the time is unattributed.
    fn leave(&mut self, now: u64, dues: Dues) {
        for due in dues {
            let is_off = matches!(due.state, State::GvlBlocked | State::GvlWait);
            let off_at = self.off_at.filter(|_| is_off);
            let last = self.accounting.last_point(due.state);
            let known = if due.is_remainder() {
                last.or(off_at)
            } else {
                off_at.or(last)
            };
            match known {
                Some(point) => {
                    let seq = self.accounting.seq();
                    self.accounting.recorded_at(point, due.state);
                    self.recording.push(now, point, seq, due.state, due.values);
                }
                None => self.recording.unattributed[due.state as usize].add(due.values),
            }
        }
    }

    /// # Safety
    /// As for [`Recorder::take_stack`].
    unsafe fn take_stack(&mut self, vm: &impl VmFrames, native_id: u32, tick_ns: u64) {
        let now_ns = clock::monotonic_ns();
        let depth = self.backtrace.take(vm);
        if depth == 0 || tick_ns <= self.log.last_tick() {
            return;
        }
        let stack = self.backtrace.stack(depth);
        let shared = self.log.shared_with(stack);
        let new = stack.frames.len() - shared;
        // SAFETY: from the VM; the handler is ready for faults.
        if !unsafe { vm.are_frames(&stack.frames[..new]) } {
            self.unreadable += 1;
            return;
        }
        let cpu_ns = clock::thread_cpu_ns();
        if self.native_id != native_id {
            self.accounting.moved_to_native_thread(cpu_ns);
            self.native_id = native_id;
        }
        let times = TickTimes {
            tick_ns,
            now_ns,
            cpu_ns,
        };
        self.log.push(stack, shared, times);
        self.spent_ns += clock::monotonic_ns().saturating_sub(now_ns);
    }

    /// The thread goes on, and nobody else is to have its time that no stack is known for.
    fn leave_unattributed(&mut self, now: u64) {
        let (seq, labels) = (self.accounting.seq(), LabelSetId::default());
        let node = NodeId::ROOT;
        for state in State::ALL {
            let values = std::mem::take(&mut self.recording.unattributed[state as usize]);
            if !values.is_zero() {
                let point = SamplePoint { node, labels };
                self.recording.push(now, point, seq, state, values);
            }
        }
    }

    fn move_to(&mut self, merged: &mut Merged, ractor: u32) {
        let sums = std::mem::take(&mut self.recording.buffer.sums);
        let points = State::ALL.map(|state| self.accounting.last_point(state));
        let unattributed = std::mem::take(&mut self.recording.unattributed);
        let counters = std::mem::take(&mut self.recording.counters);
        merged.add(&self.recording.tree, sums, ractor);
        merged.add_unattributed(&self.recording.tree, unattributed, points, ractor);
        merged.counters.add(&counters);
        if self.recording.tree.nodes().len() > LARGE_TREE {
            self.recording.tree = CapturedTree::new(NODE_CAP);
            self.accounting.forget_points();
            self.last.keep(0);
            self.off_at = None;
        }
    }
}

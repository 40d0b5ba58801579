//! What is recorded of one thread of another Ractor: by whoever has taken its recorder. Times are
//! told by the thread's hooks and its handler; the worker and the main Ractor gather the samples.

mod name;
mod off_gvl_stack;
mod tick_stacks;
mod turn;

use super::config::RecorderConfig;
use super::merged::Merged;
use super::missed_events::{MissedEvent, MissedEvents};
use crate::accounting::{Accounting, Dues, SamplePoint};
use crate::collect::sample::{Sample, SampleSums, SumLimits};
use crate::recording::{NotedLabels, Position, Recording, SampleStack, Sink};
use crate::threads::native;
use crate::tick_capture::TickTimes;
use crate::timer::pace::Pace;
use name::Name;
use off_gvl_stack::OffGvlStack;
use rperf_model::{LabelSetId, Mode, NodeId, State};
use rperf_vm::{
    Backtrace, CapturedTree, FrameWord, GcEvent, GcMoment, GcPhase, GcProgress, GcWork, LastStack,
    NativeId, RequestNumber, VmFrames, VmName, clock, tells_line,
};
use std::sync::Arc;
use tick_stacks::TickStacks;
use turn::Turn;

/// Frames of a stack that are kept, those nearest to the leaf: there may be many Ractors.
const DEPTH: usize = 2048;

/// Divides an interval: after a run shorter than such a part the CPU clock isn't read.
const CLOCK_PART: u64 = 8;

/// Nodes that the call tree holds at most.
const NODE_CAP: usize = 1 << 20;

/// What a recorder holds is let go of when it is taken out, from here on.
const LARGE_TREE: usize = 1 << 12;

/// What only who has taken the recorder may touch.
#[derive(Debug)]
pub struct ThreadRecording {
    config: RecorderConfig,
    pace: Arc<Pace>,
    accounting: Accounting,
    recording: Recording<Sums>,
    last: LastStack,
    name: Name,
    backtrace: Backtrace,
    tick_stacks: TickStacks,
    turn: Turn,
    gc: GcProgress,
    /// Nothing was told of the thread before its first event.
    is_new: bool,
    off_gvl: OffGvlStack,
}

/// When a thread has got its Ractor's GVL.
#[derive(Debug, Clone, Copy)]
pub struct Wake {
    /// Since when it was ready to run; 0 if that isn't known.
    pub ready: u64,
    /// When it got the GVL.
    pub now: u64,
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

impl ThreadRecording {
    /// The recording of a thread of which nothing is known yet, and which has the number `seq` in
    /// the profile.
    pub fn new(seq: u32, seed: u64, config: RecorderConfig, pace: &Arc<Pace>) -> Self {
        let accounting = Accounting::new(seq, config.mode, pace, 0, seed);
        let sums = Sums {
            sums: SampleSums::default(),
            limits: config.limits,
        };
        let mut recording = Recording::new(NODE_CAP, sums);
        recording.counters.threads = 1;
        Self {
            config,
            pace: Arc::clone(pace),
            accounting,
            recording,
            last: LastStack::default(),
            name: Name::default(),
            backtrace: Backtrace::with_room(DEPTH, config.with_lines),
            tick_stacks: TickStacks::new(&config, DEPTH),
            turn: Turn::UNSEEN,
            gc: GcProgress::default(),
            is_new: true,
            off_gvl: OffGvlStack::default(),
        }
    }

    /// Takes in what came before: the stacks of ticks, and then what was missed, as there are no
    /// stacks while something is missed.
    pub fn catch_up(&mut self, missed: &MissedEvents, began_ns: u64) {
        self.make_samples();
        while let Some(event) = missed.take() {
            match event {
                MissedEvent::Resumed(now, ready) => {
                    let cpu = self.accounting.cpu_estimate();
                    let dues = self.resumed(now, ready, began_ns, || cpu);
                    self.turn.forget_clock();
                    if let Some(dues) = dues {
                        self.leave(now, dues);
                    }
                }
                MissedEvent::Suspended(now) => {
                    self.suspended(now, began_ns);
                    self.off_gvl.forget();
                }
            }
        }
    }

    /// Whether the log should be emptied soon.
    pub fn is_filling(&self) -> bool {
        self.tick_stacks.log.is_filling()
    }

    fn make_samples(&mut self) {
        if self.tick_stacks.log.is_empty() {
            return;
        }
        let began = clock::monotonic_ns();
        let (ticks, _) = self.recording.replay(
            &mut self.tick_stacks.log,
            &mut self.accounting,
            &mut self.last,
            &[NotedLabels::NONE],
        );
        let spent = clock::monotonic_ns().saturating_sub(began);
        self.tick_stacks
            .count_into(&mut self.recording.counters, ticks, spent);
    }

    /// The thread, which is calling, has got its Ractor's GVL; as
    /// [`Recorder::resumed`](super::recorder::Recorder::resumed).
    pub fn resumed_here(&mut self, vm: &impl VmFrames, wake: Wake, began_ns: u64, has_moved: bool) {
        if has_moved || !self.turn.is_here() {
            self.accounting
                .moved_to_native_thread(clock::thread_cpu_ns());
            self.turn.native_id = native::id();
        }
        self.turn.resumed_ns = wake.now;
        if let Some(dues) = self.resumed(wake.now, wake.ready, began_ns, clock::thread_cpu_ns) {
            self.record(vm, wake.now, dues);
        }
    }

    /// The thread has this name.
    pub fn note_name(&mut self, name: &impl VmName) {
        self.name.note(name);
    }

    /// The thread, which is calling, is about to give its Ractor's GVL up.
    pub fn suspended_here(&mut self, vm: &impl VmFrames, began_ns: u64) {
        let now = clock::monotonic_ns();
        self.suspended(now, began_ns);
        // It may go on elsewhere, and then nobody can read this clock for it.
        let ran = self.turn.length(now);
        if self.turn.is_here() && ran > self.config.interval / CLOCK_PART {
            self.accounting.read_cpu(clock::thread_cpu_ns());
        }
        self.note_stack(vm, now);
    }

    /// The thread, which is calling, collects garbage. Returns the piece of work that has ended, and
    /// when.
    pub fn collecting(
        &mut self,
        event: GcEvent,
        tick: u64,
        phase: GcPhase,
    ) -> Option<(u64, GcWork)> {
        let moment = GcMoment::now();
        let work = self.gc.advance(event, moment, tick, phase)?;
        Some((moment.monotonic_ns, work))
    }

    /// A piece of garbage collection work has ended at `now`; `tick` is the last tick.
    pub fn collected(
        &mut self,
        vm: &impl VmFrames,
        now: u64,
        work: GcWork,
        tick: u64,
        began_ns: u64,
    ) {
        if !self.accounting.counts() {
            self.is_new = false;
            self.accounting.begin_running(began_ns);
        }
        let dues = self.accounting.collected(work, tick);
        if !dues.is_empty() {
            self.record(vm, now, dues);
        }
    }

    /// Brings the thread up to `now`, and records all remainders. If it has ended, its CPU clock then
    /// is given.
    pub fn bring_up(&mut self, now: u64, ready: u64, end_cpu_ns: Option<u64>) {
        if end_cpu_ns.is_none() {
            let dues = self.accounting.flush(now, ready, None);
            self.leave(now, dues);
            self.leave_unattributed(now);
            return;
        }
        // It has ended on the native thread that it last ran on.
        let dues = self
            .accounting
            .finish(end_cpu_ns.filter(|_| self.turn.native_id.is_known()));
        self.leave(now, dues);
        if self.accounting.was_sampled() {
            let ended = Sample::thread_ended(self.accounting.seq());
            self.recording.buffer.push(ended);
        }
    }

    /// No time counts from `now` on.
    pub fn pause(&mut self, now: u64, ready: u64) {
        let dues = self.accounting.pause(now, ready, || None);
        self.leave(now, dues);
        self.turn.forget_clock();
        self.gc = GcProgress::default();
    }

    /// Hands out all words that may be objects, for the garbage collector.
    pub fn each_root(&self, mut mark: impl FnMut(FrameWord)) {
        self.tick_stacks.log.frames().for_each(&mut mark);
        let frames = self.recording.tree.frames();
        frames.iter().copied().for_each(mark);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.backtrace.memory()
            + self.tick_stacks.log.memory()
            + self.recording.tree.memory()
            + self.recording.buffer.sums.memory()
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

    /// Takes the stack at which the thread gives the GVL up, once in an interval of the
    /// budget: one that waits for long is in the profile with its own stack, though nobody else can take it.
    fn note_stack(&mut self, vm: &impl VmFrames, now: u64) {
        self.off_gvl.forget();
        let is_wanted =
            self.config.mode == Mode::Wall && self.off_gvl.is_due(now, self.pace.off_gvl());
        if is_wanted {
            self.off_gvl.begin(now);
            let depth = self.backtrace.take(vm);
            let stack = self.backtrace.stack(depth);
            let interned = self.recording.intern(stack, &mut self.last);
            self.off_gvl.note(interned.node);
            self.note_spent(true, clock::monotonic_ns().saturating_sub(now));
        }
    }

    /// A hook has taken a stack in `spent` ns; `is_off_gvl`: for time off the GVL.
    fn note_spent(&mut self, is_off_gvl: bool, spent: u64) {
        self.recording.counters.sampling_time_ns += spent;
        self.pace.note_other(is_off_gvl, spent);
    }

    /// Records what is due on the calling thread at its stack.
    #[cold]
    fn record(&mut self, vm: &impl VmFrames, now: u64, dues: Dues) {
        let (began, is_off_gvl) = (clock::monotonic_ns(), dues.is_off_gvl());
        let depth = self.backtrace.take(vm);
        let position = Position {
            stack: Some(SampleStack::Frames(self.backtrace.stack(depth))),
            last: &mut self.last,
            labels: None,
        };
        self.recording
            .record(now, &mut self.accounting, dues, position);
        self.note_spent(is_off_gvl, clock::monotonic_ns().saturating_sub(began));
    }

    /// Records what is due at the stacks that are known: those of the last samples, or where the
    /// thread gave the GVL up. Without one the time is unattributed.
    fn leave(&mut self, now: u64, dues: Dues) {
        for due in dues {
            let is_off = matches!(due.state, State::GvlBlocked | State::GvlWait);
            let off_at = self.off_gvl.at().filter(|_| is_off);
            let last = self.accounting.last_point_of(&due);
            let last = last.or_else(|| self.accounting.last_point(due.state));
            let known = if due.is_remainder() {
                last.or(off_at)
            } else {
                off_at.or(last)
            };
            match known {
                Some(point) => {
                    let seq = self.accounting.seq();
                    self.accounting.recorded_at(point, &due);
                    self.recording.push(now, point, seq, due.state, due.values);
                }
                None => self.recording.unattributed[due.state as usize].add(due.values),
            }
        }
    }

    /// Takes the stack of the thread, which is calling, for the tick at `tick_ns`.
    ///
    /// # Safety
    /// The conditions are those of [`Recorder::take_stack`](super::recorder::Recorder::take_stack).
    pub unsafe fn take_stack(&mut self, vm: &impl VmFrames, native_id: NativeId, tick_ns: u64) {
        let now_ns = clock::monotonic_ns();
        let depth = self.backtrace.take(vm);
        if depth == 0 || tick_ns <= self.tick_stacks.log.last_tick() {
            return;
        }
        if !tells_line(self.config.layout.as_ref(), vm) {
            self.backtrace.set_line_of_leaf(0);
        }
        let stack = self.backtrace.stack(depth);
        let shared = self.tick_stacks.log.shared_with(stack);
        let new = stack.frames.len() - shared;
        // SAFETY: from the VM; the handler is ready for faults.
        if !unsafe { vm.are_frames(&stack.frames[..new]) } {
            self.tick_stacks.note_unreadable();
            return;
        }
        let cpu_ns = clock::thread_cpu_ns();
        if self.turn.native_id != native_id {
            self.accounting.moved_to_native_thread(cpu_ns);
            self.turn.native_id = native_id;
        }
        let times = TickTimes {
            tick_ns,
            now_ns,
            cpu_ns,
            waits: None,
        };
        self.tick_stacks.push(stack, shared, times);
    }

    /// The thread goes on, and nobody else is to have its time that no stack is known for.
    fn leave_unattributed(&mut self, now: u64) {
        let (seq, labels) = (self.accounting.seq(), LabelSetId::default());
        let node = NodeId::ROOT;
        for state in State::ALL {
            let values = std::mem::take(&mut self.recording.unattributed[state as usize]);
            if !values.is_zero() {
                let point = SamplePoint {
                    node,
                    labels,
                    request: RequestNumber::NONE,
                    gc: None,
                };
                self.recording.push(now, point, seq, state, values);
            }
        }
    }

    /// Moves what is recorded to `merged`, if its call tree has become large. The thread goes on, and
    /// keeps its time that no stack is known for.
    pub fn move_large_tree(&mut self, merged: &mut Merged, ractor: u32) {
        if self.recording.tree.nodes().len() > LARGE_TREE {
            let unattributed = std::mem::take(&mut self.recording.unattributed);
            self.move_to(merged, ractor);
            self.recording.unattributed = unattributed;
        }
    }

    /// The thread has ended, and all that was recorded has been moved to `merged`.
    pub fn end_name(&self, merged: &mut Merged) {
        let has_samples = self.accounting.was_sampled();
        merged.names.ended(self.accounting.seq(), has_samples);
    }

    /// Moves what is recorded to `merged`; `ractor` is the thread's.
    pub fn move_to(&mut self, merged: &mut Merged, ractor: u32) {
        if let Some(name) = self.name.text() {
            let name = Some(Arc::clone(name));
            merged.names.set(self.accounting.seq(), name);
        }
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
            self.off_gvl.forget();
        }
    }
}

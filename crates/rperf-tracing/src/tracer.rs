//! The state of a traced session, and what its threads, fibers and clock do to it; calls and
//! returns are in `calls`. At each event the time since the last one goes to the frame that was
//! innermost. Under the GVL.

use crate::clock::cpu_times::CpuTimes;
use crate::clock::session_time::SessionTime;
use crate::clock::{ClockReading, TraceClock};
use crate::cost::looks::Looks;
use crate::event::{CallKind, TraceVm, marked_frames};
use crate::fiber::fibers::Fibers;
use crate::fiber::{Fiber, Open};
use crate::profile::TraceSnapshot;
#[cfg(feature = "measure")]
use crate::profile::check::StackCheck;
use crate::profile::label_sets::TracedLabels;
use crate::timed_calls::TimedCalls;
use crate::timed_calls::latencies::MethodLatencies;
use crate::timed_calls::spans::Spans;
use crate::tree::snapshot::TreeSnapshot;
use crate::tree::thread::{CountedThread, TracedThread};
use crate::tree::threads::{ThreadNumber, Threads};
use crate::tree::{TracedFrame, TracedTree};
use rperf_model::State;
use rperf_model::TraceLevel;
use rperf_vm::{Allocations, FrameWord, MAX_DEPTH};

pub(crate) mod calls;
#[cfg(feature = "measure")]
pub(crate) mod compare;
pub(crate) mod cpu_events;
pub(crate) mod follow;
pub(crate) mod labelled;
pub(crate) mod objects;
pub(crate) mod paused;
pub(crate) mod thread_events;

/// Frames below a new one that are looked at again at most.
pub(crate) const LOOK: usize = 16;

/// The depth of a stack that was taken from outside: each event of its own is above.
const UNKNOWN_DEPTH: u32 = u32::MAX - 1;

/// A traced session: what each event touches, and what was asked for beside calls and their times.
/// The fiber that runs is the one of the thread that runs.
#[derive(Debug)]
pub struct Tracer {
    pub(crate) level: TraceLevel,
    pub(crate) time: SessionTime,
    pub(crate) looks: Looks,
    pub(crate) fibers: Fibers,
    pub(crate) threads: Threads,
    pub(crate) tree: TracedTree,
    pub(crate) labels: TracedLabels,
    pub(crate) cpu: CpuTimes,
    /// Objects, if they are counted.
    pub(crate) objects: Option<Allocations>,
    /// Where stacks are compared.
    #[cfg(feature = "measure")]
    pub(crate) check: Option<StackCheck>,
    /// Calls that are timed one by one, if that was asked for.
    pub(crate) timed_calls: Option<Box<TimedCalls>>,
    /// Room for a whole stack.
    pub(crate) room: Vec<FrameWord>,
}

impl Tracer {
    /// A session that begins at `start`. The thread that begins it has to be announced first.
    pub fn new(level: TraceLevel, clock: TraceClock, start: ClockReading) -> Self {
        Self {
            level,
            time: SessionTime::new(clock, start),
            looks: Looks::new(start.monotonic_ns),
            fibers: Fibers::default(),
            threads: Threads::default(),
            tree: TracedTree::default(),
            labels: TracedLabels::default(),
            cpu: CpuTimes::default(),
            objects: None,
            #[cfg(feature = "measure")]
            check: None,
            timed_calls: None,
            room: vec![0; MAX_DEPTH],
        }
    }

    /// A thread comes into being, or is there as the session begins. It hasn't got the GVL.
    pub fn announce(&mut self, now: u64) -> ThreadNumber {
        if self.threads.is_full() {
            return ThreadNumber::LAST;
        }
        let fiber = self.fibers.add();
        if let Some(calls) = &mut self.timed_calls {
            calls.add_thread(fiber);
        }
        let now = now.max(self.time.last);
        self.threads.add(TracedThread::new(fiber, now))
    }

    /// A thread comes into being in the session, and so do all its fibers.
    pub fn announce_new(&mut self, now: u64) -> ThreadNumber {
        let number = self.announce(now);
        if let Some(thread) = self.threads.get_mut(number) {
            thread.own_fiber = Some(thread.fiber);
        }
        number
    }

    /// The fiber that runs has this object.
    pub fn name_fiber(&mut self, object: usize) {
        let fiber = self.fibers.running_number();
        self.fibers.name(fiber, object);
    }

    /// The stack of a thread as the session begins, leaf first, in which blocks are marked: taken from
    /// outside, or its own of this `depth`.
    pub fn adopt_stack(
        &mut self,
        vm: &impl TraceVm,
        thread: ThreadNumber,
        frames: &[FrameWord],
        depth: Option<u32>,
    ) {
        let Some(state) = self.threads.get(thread) else {
            return;
        };
        let fiber = state.fiber;
        self.rebase(vm, fiber, frames, depth.unwrap_or(UNKNOWN_DEPTH));
    }

    /// The thread that runs has switched to the fiber with this object.
    pub fn switched(&mut self, vm: &impl TraceVm, object: usize, now: u64) {
        self.charge_unless_paused(now);
        let depth = vm.depth();
        // One that was there before the session is new to us.
        let fiber = self.fibers.with_object(object).unwrap_or_else(|| {
            let own = self.threads.take_own_fiber(depth);
            let fiber = own.unwrap_or_else(|| self.fibers.add());
            self.fibers.name(fiber, object);
            fiber
        });
        if depth <= 1 || !self.is_stack_of(vm, fiber, depth) {
            self.fibers[fiber].clear();
            if let Some(calls) = &mut self.timed_calls {
                calls.end_fiber(&self.tree, fiber);
            }
        }
        self.fibers.run(fiber);
        if let Some(thread) = self.threads.get_running_mut() {
            thread.fiber = fiber;
        }
        if self.time.is_paused() {
            self.runs_in_pause();
        } else if depth > 1 && self.fibers[fiber].stack.is_empty() {
            // From before the session, or gone on in a pause.
            self.retake(vm, 0, depth);
        }
    }

    /// Whether the VM's stack can be the one of `fiber`: after a compaction of the heap another
    /// fiber's object can be where this one's was.
    fn is_stack_of(&self, vm: &impl TraceVm, fiber: usize, depth: u32) -> bool {
        let stack = &self.fibers[fiber].stack;
        let Some(known) = stack.iter().rev().find(|open| open.word != 0) else {
            return true;
        };
        let mut frames = [0; LOOK];
        let found = marked_frames(vm, &mut frames);
        let is_deeper = |open: &Open| open.depth > depth && open.depth != UNKNOWN_DEPTH;
        frames[..found].contains(&known.word) && !stack.last().is_some_and(is_deeper)
    }

    /// The time up to now goes to the frame that was innermost.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: u64) {
        if !self.level.timed {
            return;
        }
        let node = self.fibers.charged();
        let gap = self.time.gap(now);
        if let Some(thread) = self.threads.get_running_mut() {
            thread.sums.counts.of(node).running += gap;
        }
        if self.cpu.is_long(gap) {
            self.end_cpu_window(State::Running);
        }
        self.time.come_to(now);
    }

    /// Whether stacks are compared.
    #[inline]
    pub fn is_checked(&self) -> bool {
        #[cfg(feature = "measure")]
        return self.check.is_some();
        #[cfg(not(feature = "measure"))]
        false
    }

    /// Whether the hook is to look at its own time now: in 1 of about 64 events, at random, as
    /// calls and returns come in patterns.
    #[inline]
    pub fn is_look_due(&mut self) -> bool {
        let is_checked = self.is_checked();
        if !self.looks.are_due() || !(self.level.timed || is_checked) {
            return false;
        }
        self.looks.plan_next(is_checked);
        true
    }

    /// An event of this kind, a call or a return, kept the hook busy for so many ticks after its
    /// reading of the clock.
    pub fn note_look(&mut self, kind: CallKind, is_return: bool, ticks: u64) {
        self.looks.add(kind, is_return, ticks);
    }

    /// From now on calls have nodes of their own up to this level. Before any thread is announced.
    pub fn limit_depth(&mut self, levels: u32) {
        self.tree.limit(levels);
    }

    /// From now on calls that take so long are kept one by one; `ns_per_tick` is nearly the length
    /// of a tick. Before any thread is announced.
    pub fn keep_spans(&mut self, least_ns: u64, ns_per_tick: f64) {
        let calls = self.timed_calls.get_or_insert_default();
        calls.spans = Some(Spans::of(least_ns, ns_per_tick));
    }

    /// From now on it is kept how long the calls of each method take.
    pub fn keep_latencies(&mut self, ns_per_tick: f64) {
        let calls = self.timed_calls.get_or_insert_default();
        calls.latencies = Some(MethodLatencies::new(ns_per_tick));
    }

    /// An event has changed the stack: calls that are timed one by one begin and end.
    #[inline]
    pub fn follow_calls(&mut self, now: u64) {
        if let Some(calls) = &mut self.timed_calls
            && let Some(Fiber { stack, .. }) = self.fibers.get_running()
        {
            let (fiber, thread) = (self.fibers.running_number(), self.threads.running_number());
            calls.follow(&self.tree, fiber, thread.0, stack, now);
        }
    }

    /// What has been counted up to `end`.
    pub fn snapshot(&self, end: ClockReading) -> TraceSnapshot {
        self.taken(end, self.tree.snapshot(), self.threads.counted())
    }

    /// What was counted up to `end`, where the session is over.
    pub fn into_snapshot(mut self, end: ClockReading) -> TraceSnapshot {
        let (tree, threads) = (self.tree.take_snapshot(), self.threads.take_counted());
        self.taken(end, tree, threads)
    }

    fn taken(
        &self,
        end: ClockReading,
        tree: TreeSnapshot,
        threads: Vec<CountedThread>,
    ) -> TraceSnapshot {
        let timed = self.timed_calls.as_deref();
        TraceSnapshot {
            level: self.level,
            time: self.time.until(end),
            tree,
            threads,
            labels: self.labels.snapshot(),
            events: self.looks.events,
            bodies: self.looks.bodies(),
            with_cpu: self.cpu.is_measured(),
            objects: self.objects.as_ref().map(Allocations::sums),
            #[cfg(feature = "measure")]
            check: self.check.clone(),
            timed_calls: timed.map(|calls| calls.snapshot(&end)).unwrap_or_default(),
        }
    }

    /// Lets go of all that was counted: from `start` on it is counted anew. Open calls belong to
    /// what was before.
    pub fn clear(&mut self, start: ClockReading) {
        self.clear_labelled();
        self.time.restart(start);
        if let Some(objects) = &mut self.objects {
            objects.clear();
        }
        if let Some(calls) = &mut self.timed_calls {
            calls.clear(&start);
        }
        self.looks.clear();
    }

    /// The clock that events are timed by.
    pub fn clock(&self) -> TraceClock {
        self.time.clock
    }

    /// All frames and the classes that have methods of C: the garbage collector's roots.
    pub fn frames(&self) -> &[TracedFrame] {
        self.tree.frames()
    }

    /// The frames and classes that are new since this was asked last.
    #[inline]
    pub fn new_frames(&mut self) -> &[TracedFrame] {
        match self.tree.has_new_frames() {
            true => self.tree.take_new_frames(),
            false => &[],
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.tree.memory()
            + self.threads.memory()
            + self.labels.memory()
            + self.fibers.memory()
            + self.objects.as_ref().map_or(0, Allocations::memory)
            + self.room.capacity() * size_of::<FrameWord>()
            + self.timed_calls.as_ref().map_or(0, |it| it.memory())
    }

    /// The words of the present fiber's stack, root first, but for what only notes a depth.
    #[cfg(test)]
    pub(crate) fn stack_words(&self) -> Vec<FrameWord> {
        let mut nodes: Vec<u32> = Vec::new();
        for open in &self.fibers.running().stack {
            if nodes.last() != Some(&open.node) {
                nodes.push(open.node);
            }
        }
        let word = |node: u32| self.tree.node(node).frame.word;
        nodes.into_iter().map(word).collect()
    }
}

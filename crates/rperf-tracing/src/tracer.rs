//! The state of a traced session, and what its threads, fibers and clock do to it; calls and
//! returns are in `calls`. At each event the time since the last one goes to the frame that was
//! innermost. Under the GVL.

use crate::clock::cpu_times::{CpuClock, NO_GAP};
use crate::clock::pauses::Pauses;
use crate::clock::{ClockReading, TraceClock};
use crate::cost::Bodies;
use crate::event::{CallKind, TraceVm, marked_frames};
use crate::fiber::{Fiber, Open};
use crate::profile::TraceSnapshot;
#[cfg(feature = "measure")]
use crate::profile::check::StackCheck;
use crate::profile::label_sets::TracedLabels;
use crate::timed_calls::TimedCalls;
use crate::timed_calls::latencies::MethodLatencies;
use crate::timed_calls::spans::Spans;
use crate::tree::thread::{LabelledSums, TracedThread};
use crate::tree::{ROOT, TracedFrame, TracedNode, TracedTree};
use rperf_model::State;
use rperf_model::TraceLevel;
use rperf_vm::{Allocations, FrameWord, MAX_DEPTH};
use rustc_hash::FxHashMap;
use std::sync::Arc;

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

/// Threads at most; more share the last one's numbers.
pub(crate) const MAX_THREADS: usize = 1 << 14;

/// A thread of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadNumber(pub u32);

/// A traced session.
#[derive(Debug)]
pub struct Tracer {
    pub(crate) level: TraceLevel,
    clock: TraceClock,
    pub(crate) start: ClockReading,
    pub(crate) pauses: Pauses,
    pub(crate) tree: TracedTree,
    pub(crate) fibers: Vec<Fiber>,
    /// By the VM's objects, which may be new ones at the same place.
    fibers_by_word: FxHashMap<usize, usize>,
    pub(crate) threads: Vec<TracedThread>,
    pub(crate) labels: TracedLabels,
    pub(crate) thread: usize,
    pub(crate) fiber: usize,
    /// When the last event came.
    pub(crate) last: u64,
    /// The state of a collection that the running thread is at.
    pub(crate) collecting: Option<State>,
    pub(crate) events: u64,
    /// The event after which the hook looks at its own time next.
    next_look: u64,
    random: u64,
    bodies: Bodies,
    /// A gap of more ticks between two events is a long one.
    pub(crate) long_gap: u64,
    /// The clock of CPU time, if that is measured.
    pub(crate) cpu: Option<CpuClock>,
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
            clock,
            start,
            pauses: Pauses::default(),
            tree: TracedTree::default(),
            fibers: Vec::new(),
            fibers_by_word: FxHashMap::default(),
            threads: Vec::new(),
            labels: TracedLabels::default(),
            thread: 0,
            fiber: 0,
            last: start.ticks,
            collecting: None,
            events: 0,
            next_look: 0,
            random: start.monotonic_ns | 1,
            bodies: Bodies::default(),
            long_gap: NO_GAP,
            cpu: None,
            objects: None,
            #[cfg(feature = "measure")]
            check: None,
            timed_calls: None,
            room: vec![0; MAX_DEPTH],
        }
    }

    /// A thread comes into being, or is there as the session begins. It hasn't got the GVL.
    pub fn announce(&mut self, now: u64) -> ThreadNumber {
        if self.threads.len() >= MAX_THREADS {
            return ThreadNumber(MAX_THREADS as u32 - 1);
        }
        let fiber = self.new_fiber();
        if let Some(spans) = self.timed_calls.as_mut().and_then(|it| it.spans.as_mut()) {
            spans.add_thread(fiber);
        }
        self.threads
            .push(TracedThread::new(fiber, now.max(self.last)));
        ThreadNumber(self.threads.len() as u32 - 1)
    }

    /// A thread comes into being in the session, and so do all its fibers.
    pub fn announce_new(&mut self, now: u64) -> ThreadNumber {
        let number = self.announce(now);
        if let Some(thread) = self.threads.get_mut(number.0 as usize) {
            thread.own_fiber = Some(thread.fiber);
        }
        number
    }

    /// The fiber that runs has this object.
    pub fn name_fiber(&mut self, object: usize) {
        self.fibers_by_word.insert(object, self.fiber);
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
        let Some(state) = self.threads.get(thread.0 as usize) else {
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
        let fiber = match self.fibers_by_word.get(&object) {
            Some(&fiber) => fiber,
            None => {
                let own = self.take_own_fiber(depth);
                let fiber = own.unwrap_or_else(|| self.new_fiber());
                self.fibers_by_word.insert(object, fiber);
                fiber
            }
        };
        if depth <= 1 || !self.is_stack_of(vm, fiber, depth) {
            self.fibers[fiber].clear();
            if let Some(calls) = &mut self.timed_calls {
                calls.end_fiber(&self.tree, fiber);
            }
        }
        self.fiber = fiber;
        if let Some(thread) = self.threads.get_mut(self.thread) {
            thread.fiber = fiber;
        }
        if self.pauses.since.is_some() {
            self.runs_in_pause();
        } else if depth > 1 && self.fibers[fiber].stack.is_empty() {
            // From before the session, or gone on in a pause.
            self.retake(vm, 0, depth);
        }
    }

    /// The own fiber of the thread that runs, if it comes back to it for the first time: the
    /// others begin at depth 1, if there were none before the session.
    fn take_own_fiber(&mut self, depth: u32) -> Option<usize> {
        let thread = self.threads.get_mut(self.thread)?;
        thread.own_fiber.take_if(|_| depth > 1)
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

    fn new_fiber(&mut self) -> usize {
        self.fibers.push(Fiber::default());
        self.fibers.len() - 1
    }

    /// The time up to now goes to the frame that was innermost.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: u64) {
        if !self.level.timed {
            return;
        }
        let top = self.fibers.get(self.fiber).and_then(Fiber::top);
        let node = top.map_or(ROOT, |top| top.charge);
        let gap = now.saturating_sub(self.last);
        if let Some(thread) = self.threads.get_mut(self.thread) {
            thread.sums.counts.of(node).running += gap;
        }
        if gap > self.long_gap {
            self.end_cpu_window(State::Running);
        }
        // Counters of different processors may differ by a little.
        self.last = self.last.max(now);
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
        if self.events < self.next_look || !(self.level.timed || is_checked) {
            return false;
        }
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.next_look = self.events
            + match is_checked {
                true => 1 + (self.random >> 60),
                false => 32 + (self.random >> 58),
            };
        true
    }

    /// An event of this kind, a call or a return, kept the hook busy for so many ticks after its
    /// reading of the clock.
    pub fn note_look(&mut self, kind: CallKind, is_return: bool, ticks: u64) {
        self.bodies.add(kind, is_return, ticks);
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
            && let Some(fiber) = self.fibers.get(self.fiber)
        {
            let (fiber, stack) = (self.fiber, &fiber.stack);
            calls.follow(&self.tree, fiber, self.thread as u32, stack, now);
        }
    }

    /// What has been counted up to `end`.
    pub fn snapshot(&self, end: ClockReading) -> TraceSnapshot {
        let sums = self.threads.iter().map(TracedThread::labelled).collect();
        let names = self.threads.iter().map(|it| it.name.clone()).collect();
        self.taken(end, self.tree.nodes().to_vec(), sums, names)
    }

    /// What was counted up to `end`, where the session is over.
    pub fn into_snapshot(mut self, end: ClockReading) -> TraceSnapshot {
        let threads = std::mem::take(&mut self.threads);
        let names = threads.iter().map(|it| it.name.clone()).collect();
        let sums = threads.into_iter().map(TracedThread::into_labelled);
        let sums = sums.collect();
        let nodes = self.tree.take_nodes();
        self.taken(end, nodes, sums, names)
    }

    fn taken(
        &self,
        end: ClockReading,
        nodes: Vec<TracedNode>,
        threads: Vec<LabelledSums>,
        thread_names: Vec<Option<Arc<str>>>,
    ) -> TraceSnapshot {
        let timed = self.timed_calls.as_deref();
        TraceSnapshot {
            level: self.level,
            clock: self.clock,
            start: self.start,
            end,
            nodes,
            truncated: self.tree.truncated(),
            deepest: self.tree.deepest(),
            leads_elsewhere: self.tree.leads_elsewhere().to_vec(),
            threads,
            thread_names,
            label_sets: self.labels.sets().to_vec(),
            unlabelled: self.labels.refused(),
            paused_ticks: self.pauses.ticks_until(&self.start, end.ticks),
            events: self.events,
            bodies: self.bodies,
            with_cpu: self.cpu.is_some(),
            objects: self.objects.as_ref().map(Allocations::sums),
            #[cfg(feature = "measure")]
            check: self.check.clone(),
            spans: timed.and_then(|calls| calls.spans_until(&end)),
            latencies: timed.and_then(|calls| calls.latencies.clone()),
        }
    }

    /// Lets go of all that was counted: from `start` on it is counted anew. Open calls belong to
    /// what was before.
    pub fn clear(&mut self, start: ClockReading) {
        self.clear_labelled();
        self.pauses.clear();
        if let Some(objects) = &mut self.objects {
            objects.clear();
        }
        if let Some(calls) = &mut self.timed_calls {
            calls.clear(&start);
        }
        (self.start, self.events, self.next_look) = (start, 0, 0);
        self.bodies = Bodies::default();
    }

    /// The clock that events are timed by.
    pub fn clock(&self) -> TraceClock {
        self.clock
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
        let sums = self.threads.iter().map(TracedThread::memory);
        let stacks = self
            .fibers
            .iter()
            .map(|it| it.stack.capacity() * size_of::<Open>());
        self.tree.memory()
            + sums.sum::<usize>()
            + self.labels.memory()
            + stacks.sum::<usize>()
            + self.objects.as_ref().map_or(0, Allocations::memory)
            + self.room.capacity() * size_of::<FrameWord>()
            + self.timed_calls.as_ref().map_or(0, |it| it.memory())
    }

    /// The words of the present fiber's stack, root first, but for what only notes a depth.
    #[cfg(test)]
    pub(crate) fn stack_words(&self) -> Vec<FrameWord> {
        let mut nodes: Vec<u32> = Vec::new();
        for open in &self.fibers[self.fiber].stack {
            if nodes.last() != Some(&open.node) {
                nodes.push(open.node);
            }
        }
        let word = |node: u32| self.tree.node(node).frame.word;
        nodes.into_iter().map(word).collect()
    }
}

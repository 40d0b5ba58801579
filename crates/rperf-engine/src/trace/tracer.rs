//! The state of a traced session, and what each event does to it. At each event the time since
//! the last one goes to the frame that was innermost, and our stack is compared with how deep the
//! VM's is: frames that have gone without a word are dropped, and those that have come so are
//! asked for. Under the GVL.

use super::clock::{ClockReading, TraceClock};
use super::cost::Bodies;
use super::cpu_times::{CpuClock, NO_GAP};
use super::event::{Call, CallKind, FrameKind, TraceLevel, TraceVm};
use super::fiber::{Fiber, Known, Open};
use super::profile::TraceSnapshot;
use super::thread::TracedThread;
use super::tree::{ROOT, TracedFrame, TracedTree};
use crate::allocations::Allocations;
use crate::backtrace::MAX_DEPTH;
use crate::call_tree::FrameWord;
use rperf_model::State;
use rustc_hash::FxHashMap;

/// Frames below a new one that are looked at again at most.
pub(super) const LOOK: usize = 16;

/// The depth of a stack that was taken from outside: each event of its own is above.
const UNKNOWN_DEPTH: u32 = u32::MAX - 1;

/// Threads at most; more share the last one's numbers.
const MAX_THREADS: usize = 1 << 14;

/// A thread of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadNumber(pub u32);

/// A traced session.
#[derive(Debug)]
pub struct Tracer {
    pub(super) level: TraceLevel,
    clock: TraceClock,
    start: ClockReading,
    pub(super) tree: TracedTree,
    pub(super) fibers: Vec<Fiber>,
    /// By the VM's objects, which may be new ones at the same place.
    fibers_by_word: FxHashMap<usize, usize>,
    pub(super) threads: Vec<TracedThread>,
    pub(super) thread: usize,
    pub(super) fiber: usize,
    /// When the last event came.
    pub(super) last: u64,
    /// The state of a collection that the running thread is at.
    pub(super) collecting: Option<State>,
    events: u64,
    /// The event after which the hook looks at its own time next.
    next_look: u64,
    random: u64,
    bodies: Bodies,
    /// A gap of more ticks between two events is a long one.
    pub(super) long_gap: u64,
    /// The clock of CPU time, if that is measured.
    pub(super) cpu: Option<CpuClock>,
    /// Objects, if they are counted.
    pub(super) objects: Option<Allocations>,
    /// Room for a whole stack.
    pub(super) room: Vec<FrameWord>,
}

impl Tracer {
    /// A session that begins at `start`. The thread that begins it has to be announced first.
    pub fn new(level: TraceLevel, clock: TraceClock, start: ClockReading) -> Self {
        Self {
            level,
            clock,
            start,
            tree: TracedTree::default(),
            fibers: Vec::new(),
            fibers_by_word: FxHashMap::default(),
            threads: Vec::new(),
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
            room: vec![0; MAX_DEPTH],
        }
    }

    /// A thread comes into being, or is there as the session begins. It hasn't got the GVL.
    pub fn announce(&mut self, now: u64) -> ThreadNumber {
        if self.threads.len() >= MAX_THREADS {
            return ThreadNumber(MAX_THREADS as u32 - 1);
        }
        let fiber = self.new_fiber();
        self.threads.push(TracedThread::new(fiber, now));
        ThreadNumber(self.threads.len() as u32 - 1)
    }

    /// The stack of a thread, leaf first, as the session begins: taken from outside, or its own
    /// of this `depth`.
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
        self.charge(now);
        let depth = vm.depth();
        // One that was there before the session is new to us, and so is a thread's own.
        let fiber = match self.fibers_by_word.get(&object) {
            Some(&fiber) => fiber,
            None => {
                let fiber = self.new_fiber();
                self.fibers_by_word.insert(object, fiber);
                fiber
            }
        };
        if depth <= 1 || !self.is_stack_of(vm, fiber, depth) {
            self.fibers[fiber].clear();
        }
        self.fiber = fiber;
        if let Some(thread) = self.threads.get_mut(self.thread) {
            thread.fiber = fiber;
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
        let found = vm.frames(&mut frames);
        let is_deeper = |open: &Open| open.depth > depth && open.depth != UNKNOWN_DEPTH;
        frames[..found].contains(&known.word) && !stack.last().is_some_and(is_deeper)
    }

    fn new_fiber(&mut self) -> usize {
        self.fibers.push(Fiber::default());
        self.fibers.len() - 1
    }

    /// The time up to now goes to the frame that was innermost.
    #[inline]
    pub(super) fn charge(&mut self, now: u64) {
        if !self.level.timed {
            return;
        }
        let top = self.fibers.get(self.fiber).and_then(Fiber::top);
        let node = top.map_or(ROOT, |top| top.charge);
        let gap = now.saturating_sub(self.last);
        if let Some(thread) = self.threads.get_mut(self.thread) {
            thread.counts.of(node).running += gap;
        }
        if gap > self.long_gap {
            self.end_cpu_window(State::Running);
        }
        // Counters of different processors may differ by a little.
        self.last = self.last.max(now);
    }

    /// A call.
    #[inline]
    pub fn enter(&mut self, vm: &impl TraceVm, call: Call, now: u64) {
        self.events += 1;
        self.charge(now);
        let own = usize::from(!matches!(call, Call::C { .. }));
        let depth = vm.depth() + u32::from(own == 0);
        let mut frames = [0; LOOK];
        let Some(fiber) = self.fibers.get(self.fiber) else {
            return;
        };
        let top = fiber.top().copied();
        let run = top.map_or(0, |top| top.run as usize);
        let asked = (own + run).min(LOOK);
        if asked > 0 {
            vm.frames(&mut frames[..asked]);
        }
        let frame = match call {
            Call::C { owner, method } => TracedFrame {
                word: owner,
                method,
            },
            _ => TracedFrame {
                word: frames[0],
                method: 0,
            },
        };
        let follows = top.is_some_and(|top| top.depth + 1 == depth)
            && (run == 0 || fiber.still_has(&frames[own..asked]));
        if !follows {
            if call == Call::Block && self.is_told_twice(vm, top, depth, frame.word) {
                return;
            }
            self.follow(vm, depth, own);
        }
        self.push(call, frame, depth, frames[0] * own);
    }

    #[inline]
    fn push(&mut self, call: Call, frame: TracedFrame, depth: u32, word: FrameWord) {
        let (fibers, threads) = (&mut self.fibers, &mut self.threads);
        let Some((fiber, thread)) = fibers.get_mut(self.fiber).zip(threads.get_mut(self.thread))
        else {
            return;
        };
        let parent = fiber.top().map_or(ROOT, |top| top.node);
        let node = self.tree.child(parent, frame, call.kind());
        thread.counts.of(node).calls += 1;
        fiber.stack.push(Open {
            node,
            charge: node,
            depth,
            word,
            run: 0,
            known: Known::Told,
        });
    }

    /// Whether a block is the frame of the method that was told just before: one that a block
    /// defines.
    #[cold]
    fn is_told_twice(
        &self,
        vm: &impl TraceVm,
        top: Option<Open>,
        depth: u32,
        word: FrameWord,
    ) -> bool {
        top.is_some_and(|top| {
            top.is_told()
                && (top.depth, top.word) == (depth, word)
                && self.tree.node(top.node).kind == FrameKind::Method
                && vm.is_bare_code(word)
        })
    }

    /// A return; of a method of C with its owner and name.
    #[inline]
    pub fn leave(&mut self, vm: &impl TraceVm, c_method: Option<TracedFrame>, now: u64) {
        self.events += 1;
        self.charge(now);
        // The frame of a method of C is gone already, unless an exception unwinds it.
        let depth = vm.depth() + u32::from(c_method.is_some());
        let Some(fiber) = self.fibers.get_mut(self.fiber) else {
            return;
        };
        let is_usual = fiber.top().is_some_and(|top| {
            top.depth == depth
                && top.is_told()
                && c_method.is_none_or(|frame| self.tree.node(top.node).frame == frame)
        });
        if is_usual {
            fiber.stack.pop();
        } else {
            self.leave_oddly(vm, c_method, depth);
        }
    }

    /// A rescue clause begins, in a frame of its own. After a stack overflow no return was told,
    /// and this finds what depth alone can't.
    pub fn rescued(&mut self, vm: &impl TraceVm, now: u64) {
        self.events += 1;
        self.charge(now);
        let depth = vm.depth();
        let mut frames = [0; 1];
        vm.frames(&mut frames);
        let Some(fiber) = self.fibers.get_mut(self.fiber) else {
            return;
        };
        fiber
            .drop_while(|open| open.depth > depth || open.depth == depth && open.word != frames[0]);
        if fiber.is_at_base() && depth <= fiber.base_depth {
            self.retake(vm, 1, depth.saturating_sub(1));
        }
    }

    /// Whether the hook is to look at its own time now: in 1 of about 64 events, at random, as
    /// calls and returns come in patterns.
    #[inline]
    pub fn is_look_due(&mut self) -> bool {
        if self.events < self.next_look || !self.level.timed {
            return false;
        }
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.next_look = self.events + 32 + (self.random >> 58);
        true
    }

    /// An event of this kind, a call or a return, kept the hook busy for so many ticks after its
    /// reading of the clock.
    pub fn note_look(&mut self, kind: CallKind, is_return: bool, ticks: u64) {
        self.bodies.add(kind, is_return, ticks);
    }

    /// What has been counted up to `end`.
    pub fn snapshot(&self, end: ClockReading) -> TraceSnapshot {
        let threads = self.threads.iter();
        TraceSnapshot {
            level: self.level,
            clock: self.clock,
            start: self.start,
            end,
            nodes: self.tree.nodes().to_vec(),
            truncated: self.tree.truncated(),
            threads: threads.map(TracedThread::numbers).collect(),
            events: self.events,
            bodies: self.bodies,
            with_cpu: self.cpu.is_some(),
            objects: self.objects.as_ref().map(Allocations::sums),
        }
    }

    /// Lets go of all that was counted: from `start` on it is counted anew. Open calls belong to
    /// what was before.
    pub fn clear(&mut self, start: ClockReading) {
        for thread in &mut self.threads {
            thread.clear();
        }
        if let Some(objects) = &mut self.objects {
            objects.clear();
        }
        (self.start, self.events, self.next_look) = (start, 0, 0);
    }

    /// The clock that events are timed by.
    pub fn clock(&self) -> TraceClock {
        self.clock
    }

    /// All frames and the classes that have methods of C: the garbage collector's roots.
    pub fn frames(&self) -> &[TracedFrame] {
        self.tree.frames()
    }

    /// Those that are new since this was asked last.
    #[inline]
    pub fn new_frames(&mut self) -> &[TracedFrame] {
        match self.tree.has_new_frames() {
            true => self.tree.take_new_frames(),
            false => &[],
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let threads = self.threads.iter();
        let numbers = threads.map(TracedThread::memory);
        let stacks = self
            .fibers
            .iter()
            .map(|it| it.stack.capacity() * size_of::<Open>());
        self.tree.memory()
            + numbers.sum::<usize>()
            + stacks.sum::<usize>()
            + self.objects.as_ref().map_or(0, Allocations::memory)
            + self.room.capacity() * size_of::<FrameWord>()
    }

    /// The words of the present fiber's stack, root first, but for what only notes a depth.
    #[cfg(test)]
    pub(super) fn stack_words(&self) -> Vec<FrameWord> {
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

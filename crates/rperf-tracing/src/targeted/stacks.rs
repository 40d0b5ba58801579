//! The open calls of chosen methods, by fiber. A fiber has a stack only while calls of it are
//! open, so that threads and fibers may come and go by the million. Under the GVL, at events.

use rperf_model::LabelSetId;
use rperf_vm::FrameWord;
use rustc_hash::FxHashMap;

/// Threads at most whose fibers are known. Beyond, all are forgotten: calls that are open then
/// have no end.
const MAX_THREADS: usize = 1 << 14;

/// Stacks at most: of fibers that nobody resumes any more, too.
const MAX_STACKS: usize = 1 << 14;

/// Parts of a call at most that are kept apart.
const MAX_PARTS: usize = 256;

/// Empty stacks that are kept for the next call.
const SPARE_STACKS: usize = 16;

/// An open call.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenCall {
    pub(super) node: u32,
    pub(super) depth: u32,
    pub(super) word: FrameWord,
    /// A block defines its method.
    pub(super) is_bare: bool,
    pub(super) began: u64,
    pub(super) labels: LabelSetId,
}

/// What a node has within one outermost call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) node: u32,
    pub(super) labels: LabelSetId,
    pub(super) calls: u64,
    pub(super) ticks: u64,
}

/// The open calls of a fiber.
#[derive(Debug, Default)]
pub(super) struct CallStack {
    pub(super) calls: Vec<OpenCall>,
    /// Up to when the innermost call has got its time.
    pub(super) last: u64,
    /// Another fiber of the thread runs.
    pub(super) is_suspended: bool,
    /// What the outermost call has had so far.
    pub(super) parts: Vec<Part>,
    /// Whether some of these parts are missing.
    pub(super) lacks_parts: bool,
}

impl CallStack {
    #[inline]
    pub(super) fn top(&self) -> Option<&OpenCall> {
        self.calls.last()
    }

    /// Adds to what the outermost call has had.
    pub(super) fn add_part(&mut self, node: u32, labels: LabelSetId, calls: u64, ticks: u64) {
        let mut known = self.parts.iter_mut().rev();
        if let Some(part) = known.find(|it| (it.node, it.labels) == (node, labels)) {
            part.calls += calls;
            part.ticks += ticks;
        } else if self.parts.len() < MAX_PARTS {
            self.parts.push(Part {
                node,
                labels,
                calls,
                ticks,
            });
        } else {
            self.lacks_parts = true;
        }
    }

    /// What the outermost call has had belongs to what was before.
    pub(super) fn forget_parts(&mut self) {
        self.parts.clear();
        self.lacks_parts = !self.calls.is_empty();
    }
}

/// The stacks of all fibers that have open calls.
#[derive(Debug, Default)]
pub(super) struct CallStacks {
    by_fiber: FxHashMap<usize, CallStack>,
    /// The fiber that a thread has switched to.
    present: FxHashMap<usize, usize>,
    spare: Vec<CallStack>,
}

/// Stands for the fiber of a thread that hasn't switched yet. Objects have even addresses, and
/// threads even numbers.
fn unknown_of(thread: usize) -> usize {
    thread | 1
}

impl CallStacks {
    #[inline]
    fn fiber_of(&self, thread: usize) -> usize {
        let present = self.present.get(&thread).copied();
        present.unwrap_or(unknown_of(thread))
    }

    /// The stack of the fiber that `thread` runs.
    pub(super) fn of_thread(&mut self, thread: usize, now: u64) -> &mut CallStack {
        let fiber = self.fiber_of(thread);
        if self.by_fiber.len() >= MAX_STACKS && !self.by_fiber.contains_key(&fiber) {
            self.by_fiber.clear();
        }
        let spare = &mut self.spare;
        self.by_fiber.entry(fiber).or_insert_with(|| CallStack {
            last: now,
            ..spare.pop().unwrap_or_default()
        })
    }

    /// The stack of the fiber that `thread` runs, if it is known: it has open calls.
    pub(super) fn known_of_thread(&mut self, thread: usize) -> Option<&mut CallStack> {
        let fiber = self.fiber_of(thread);
        self.by_fiber.get_mut(&fiber)
    }

    /// The stack of the fiber that `thread` runs is empty.
    pub(super) fn put_away(&mut self, thread: usize) {
        let fiber = self.fiber_of(thread);
        if let Some(mut stack) = self.by_fiber.remove(&fiber)
            && self.spare.len() < SPARE_STACKS
        {
            stack.forget_parts();
            self.spare.push(stack);
        }
    }

    /// `thread` runs `fiber`, and no call of it is open.
    pub(super) fn name(&mut self, thread: usize, fiber: usize) {
        self.present.insert(thread, fiber);
    }

    /// `thread` runs `fiber` now, in which the VM's stack is as deep as `depth`.
    pub(super) fn switch(&mut self, thread: usize, fiber: usize, depth: u32) {
        let (before, unknown) = (self.fiber_of(thread), unknown_of(thread));
        if self.present.len() >= MAX_THREADS && !self.present.contains_key(&thread) {
            self.present.clear();
        }
        self.present.insert(thread, fiber);
        if depth <= 1 {
            // A new fiber, whatever its object was before.
            self.by_fiber.remove(&fiber);
        } else if before != unknown
            && !self.by_fiber.contains_key(&fiber)
            && let Some(stack) = self.by_fiber.remove(&unknown)
        {
            // The one that the thread began with: only now its object is known.
            self.by_fiber.insert(fiber, stack);
        }
    }

    /// The stacks whose threads run them, or ran them when they gave the GVL up.
    pub(super) fn running(&mut self) -> impl Iterator<Item = &mut CallStack> {
        self.by_fiber.values_mut().filter(|it| !it.is_suspended)
    }

    /// All stacks.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut CallStack> {
        self.by_fiber.values_mut()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let calls = self.by_fiber.values().map(|it| {
            it.calls.capacity() * size_of::<OpenCall>() + it.parts.capacity() * size_of::<Part>()
        });
        calls.sum::<usize>()
            + self.by_fiber.capacity() * size_of::<(usize, CallStack)>()
            + self.present.capacity() * size_of::<(usize, usize)>()
    }
}

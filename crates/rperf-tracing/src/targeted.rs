//! Exact numbers of chosen methods, while all other code runs as if nobody looked: only their
//! calls and returns are told. So the tree is sparse: a method's parent is the nearest chosen one
//! that called it. Under the GVL, at events of the chosen methods and at switches of fibers.

mod code;
mod profile;
mod stacks;
mod sums;

pub use profile::TargetedSnapshot;

use crate::clock::{ClockReading, TraceClock};
use crate::event::{TraceVm, TracedKind};
use crate::tree::{ROOT, TracedFrame, TracedTree};
use code::Code;
use rperf_model::LabelSetId;
use rperf_vm::{FrameWord, LabelSet, LabelTable};
use stacks::{CallStacks, OpenCall};
use std::sync::Arc;
use sums::Sums;

/// The chosen methods of a session.
#[derive(Debug)]
pub struct TargetedTracer {
    clock: TraceClock,
    start: ClockReading,
    tree: TracedTree,
    stacks: CallStacks,
    sums: Sums,
    code: Code,
    labels: LabelTable,
    /// The set that was looked up last, and its number.
    last_labels: Option<(LabelSet, LabelSetId)>,
}

impl TargetedTracer {
    /// Nothing yet, from `start` on.
    pub fn new(clock: TraceClock, start: ClockReading) -> Self {
        Self {
            clock,
            start,
            tree: TracedTree::default(),
            stacks: CallStacks::default(),
            sums: Sums::default(),
            code: Code::default(),
            labels: LabelTable::default(),
            last_labels: None,
        }
    }

    /// A chosen method begins on `thread`, under these labels; its frame is the topmost.
    pub fn enter(&mut self, vm: &impl TraceVm, thread: usize, labels: Option<&LabelSet>, now: u64) {
        let depth = vm.depth();
        let labels = self.number(labels);
        let stack = self.stacks.of_thread(thread, now);
        self.sums.charge(stack, now);
        let word = self.sums.drop_gone(stack, vm, depth);
        let parent = stack.top().map_or(ROOT, |top| top.node);
        let (frame, is_bare) = self.code.frame_of(vm, word);
        let node = self.tree.child(parent, frame, TracedKind::Method);
        stack.calls.push(OpenCall {
            node,
            depth,
            word,
            is_bare,
            began: now,
            labels,
        });
        self.sums.begin(stack, node, labels);
    }

    /// A chosen method ends on `thread`. Its frame is the topmost, or, of one that a block
    /// defines, may be gone. A call that began before the session is not known.
    pub fn leave(&mut self, vm: &impl TraceVm, thread: usize, now: u64) {
        let (depth, word) = (vm.depth(), topmost(vm));
        let Some(stack) = self.stacks.known_of_thread(thread) else {
            return;
        };
        self.sums.charge(stack, now);
        self.sums.drop_deeper(stack, depth + 1);
        let is_gone = |top: &OpenCall| top.depth > depth && top.is_bare;
        if !stack.top().is_some_and(is_gone) {
            self.sums.drop_deeper(stack, depth);
        }
        let is_ending =
            |top: &OpenCall| top.depth > depth || top.depth == depth && top.word == word;
        if stack.top().is_some_and(is_ending) {
            self.sums.end(stack, &self.tree, now);
        }
        if stack.calls.is_empty() {
            self.stacks.put_away(thread);
        }
    }

    /// `thread` runs a fiber, whose object this is, as the session begins.
    pub fn name_fiber(&mut self, thread: usize, fiber: usize) {
        self.stacks.name(thread, fiber);
    }

    /// `thread` has switched to a fiber, whose object this is.
    pub fn switched(&mut self, vm: &impl TraceVm, thread: usize, fiber: usize, now: u64) {
        if let Some(stack) = self.stacks.known_of_thread(thread) {
            self.sums.charge(stack, now);
            stack.is_suspended = true;
        }
        self.stacks.switch(thread, fiber, vm.depth());
        if let Some(stack) = self.stacks.known_of_thread(thread) {
            (stack.is_suspended, stack.last) = (false, now);
        }
    }

    fn number(&mut self, labels: Option<&LabelSet>) -> LabelSetId {
        let Some(labels) = labels else {
            return LabelSetId::default();
        };
        match &self.last_labels {
            Some((last, number)) if last == labels => *number,
            _ => {
                let number = self.labels.number(labels, 1);
                self.last_labels = Some((labels.clone(), number));
                number
            }
        }
    }

    /// What has been counted up to `end`.
    pub fn snapshot(&mut self, end: ClockReading) -> TargetedSnapshot {
        for stack in self.stacks.running() {
            self.sums.charge(stack, end.ticks);
        }
        TargetedSnapshot {
            clock: self.clock,
            start: self.start,
            end,
            nodes: self.tree.nodes().to_vec(),
            truncated: self.tree.truncated(),
            label_sets: self.labels.sets().to_vec(),
            unlabelled: self.labels.refused(),
            sums: self.sums.clone(),
        }
    }

    /// Lets go of all that was counted: from `start` on it is counted anew. Calls that are open
    /// belong to what was before, the rest of their time to what comes.
    pub fn clear(&mut self, start: ClockReading) {
        let sets = self.labels.take_sets();
        let old = std::mem::take(&mut self.tree);
        let old_code = std::mem::take(&mut self.code);
        (self.sums, self.labels) = (Sums::default(), LabelTable::default());
        (self.last_labels, self.start) = (None, start);
        for stack in self.stacks.all() {
            stack.forget_parts();
            let mut parent = ROOT;
            for call in &mut stack.calls {
                let frame = old.node(call.node).frame;
                self.code.keep(frame, old_code.of(frame));
                call.node = self.tree.child(parent, frame, TracedKind::Method);
                let set = sets.get((call.labels.0 as usize).wrapping_sub(1));
                let set = set.map(|texts| LabelSet::of(Arc::clone(texts)));
                let number = set.map(|set| self.labels.number(&set, 1));
                call.labels = number.unwrap_or_default();
                parent = call.node;
            }
        }
    }

    /// The clock that calls are timed by.
    pub fn clock(&self) -> TraceClock {
        self.clock
    }

    /// How many frames there are.
    pub fn frame_count(&self) -> usize {
        self.tree.frames().len()
    }

    /// The frame in this row, and the code that it runs.
    pub fn frame(&self, row: usize) -> Option<(TracedFrame, FrameWord)> {
        let frame = *self.tree.frames().get(row)?;
        Some((frame, self.code.of(frame)))
    }

    /// The garbage collector's roots.
    pub fn roots(&self) -> impl Iterator<Item = FrameWord> {
        let frames = self.tree.frames().iter().map(|frame| frame.word);
        frames.chain(self.code.all())
    }

    /// Hands out those that are new since this was done last.
    #[inline]
    pub fn each_new_root(&mut self, act: impl FnMut(FrameWord)) {
        if self.tree.has_new_frames() || self.code.has_new() {
            let frames = self.tree.take_new_frames().iter().map(|frame| frame.word);
            frames.chain(self.code.take_new()).for_each(act);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.tree.memory()
            + self.stacks.memory()
            + self.sums.memory()
            + self.labels.memory()
            + self.code.memory()
    }
}

fn topmost(vm: &impl TraceVm) -> FrameWord {
    let mut frames = [0; 1];
    vm.frames(&mut frames);
    frames[0]
}

#[cfg(test)]
mod tests;

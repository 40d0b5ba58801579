//! What is counted of chosen methods: calls and time by node and label set; of each method how
//! long its calls took, and which were the slowest. Under the GVL, at events.

use super::stacks::{CallStack, Part};
use crate::event::TraceVm;
use crate::tree::TracedTree;
use rperf_model::{Histogram, LabelSetId};
use rperf_vm::FrameWord;
use rustc_hash::FxHashMap;

/// Rows at most: beyond, calls are counted without their labels, or are lost.
const MAX_ROWS: usize = 1 << 18;

/// Frames that are looked at to see whether a call is still below.
const LOOK: usize = 64;

/// The slowest calls of a method that are kept.
pub(super) const SLOWEST: usize = 5;

/// The numbers of a node under a label set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) calls: u64,
    pub(super) ticks: u64,
}

/// An outermost call that took long, with all that it has had.
#[derive(Debug, Clone)]
pub(super) struct SlowCall {
    pub(super) began: u64,
    pub(super) ticks: u64,
    pub(super) parts: Vec<Part>,
}

/// The calls of a method that have ended.
#[derive(Debug, Clone, Default)]
pub(super) struct MethodCalls {
    pub(super) latencies: Histogram,
    /// The slowest first.
    pub(super) slowest: Vec<SlowCall>,
}

/// All numbers.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) rows: FxHashMap<(u32, LabelSetId), Row>,
    /// By the row of the method's frame.
    pub(super) methods: FxHashMap<u32, MethodCalls>,
    /// Calls of which no end was told.
    pub(super) unended: u64,
    /// Calls that found no room.
    pub(super) lost: u64,
}

impl Sums {
    /// The innermost call gets the time up to now.
    #[inline]
    pub(super) fn charge(&mut self, stack: &mut CallStack, now: u64) {
        let ticks = now.saturating_sub(stack.last);
        stack.last = now;
        if let Some(&top) = stack.top() {
            if let Some(row) = self.row(top.node, top.labels) {
                row.ticks += ticks;
            }
            stack.add_part(top.node, top.labels, 0, ticks);
        }
    }

    /// A call has begun.
    #[inline]
    pub(super) fn begin(&mut self, stack: &mut CallStack, node: u32, labels: LabelSetId) {
        match self.row(node, labels) {
            Some(row) => row.calls += 1,
            None => self.lost += 1,
        }
        stack.add_part(node, labels, 1, 0);
    }

    /// A call begins at `depth`: all that is as deep has gone, and so have calls whose frames the
    /// VM doesn't show below it any more. Returns the frame that has come.
    pub(super) fn drop_gone(
        &mut self,
        stack: &mut CallStack,
        vm: &impl TraceVm,
        depth: u32,
    ) -> FrameWord {
        self.drop_deeper(stack, depth.saturating_sub(1));
        loop {
            let mut frames = [0; LOOK];
            let top = stack.top().copied();
            let gap = top.map_or(0, |top| (depth - top.depth) as usize);
            let found = vm.frames(&mut frames[..LOOK.min(gap + 1)]);
            match top {
                Some(top)
                    if gap < LOOK && !frames[..found].iter().skip(1).any(|it| *it == top.word) =>
                {
                    self.drop_deeper(stack, top.depth.saturating_sub(1));
                }
                _ => return frames[0],
            }
        }
    }

    /// Calls whose frames were deeper than `depth` have gone without a word.
    #[inline]
    pub(super) fn drop_deeper(&mut self, stack: &mut CallStack, depth: u32) {
        while stack.top().is_some_and(|top| top.depth > depth) {
            stack.calls.pop();
            self.unended += 1;
            if stack.calls.is_empty() {
                stack.forget_parts();
            }
        }
    }

    /// The innermost call has ended.
    pub(super) fn end(&mut self, stack: &mut CallStack, tree: &TracedTree, now: u64) {
        let Some(call) = stack.calls.pop() else {
            return;
        };
        let ticks = now.saturating_sub(call.began);
        let method = self.methods.entry(tree.node(call.node).row).or_default();
        method.latencies.add(ticks);
        if !stack.calls.is_empty() {
            return;
        }
        let is_slow = |it: &[SlowCall]| it.len() < SLOWEST || it[SLOWEST - 1].ticks < ticks;
        if !stack.lacks_parts && is_slow(&method.slowest) {
            let place = method.slowest.partition_point(|it| it.ticks >= ticks);
            let slow = SlowCall {
                began: call.began,
                ticks,
                parts: stack.parts.clone(),
            };
            method.slowest.insert(place, slow);
            method.slowest.truncate(SLOWEST);
        }
        stack.forget_parts();
    }

    #[inline]
    fn row(&mut self, node: u32, labels: LabelSetId) -> Option<&mut Row> {
        let mut key = (node, labels);
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key) {
            key.1 = LabelSetId::default();
            return self.rows.get_mut(&key);
        }
        Some(self.rows.entry(key).or_default())
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let methods = self.methods.values().map(|it| {
            let parts = it.slowest.iter().map(|slow| slow.parts.capacity());
            it.latencies.memory() + parts.sum::<usize>() * size_of::<Part>()
        });
        self.rows.capacity() * size_of::<((u32, LabelSetId), Row)>() + methods.sum::<usize>()
    }
}

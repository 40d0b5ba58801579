//! The last stack that a format has written or read, kept for the next one: successive samples
//! share most of their frames, and only the other frames are looked at. Used by reader and writer
//! of pprof; any thread.

use rperf_model::{CallTree, DisplayFrame, NodeId, WeightKey};
use std::mem;

/// For how many threads it pays to keep a stack each.
pub(crate) const LAST_STACKS: usize = 64;

/// Deeper ones are not kept, or a small file could make them fill the memory.
pub(crate) const MAX_DEPTH: usize = 4096;

/// The last stack of each thread, or of several if there are many: the stacks of one
/// have most in common.
pub(crate) struct LastStacks {
    stacks: [LastStack; LAST_STACKS],
    /// The last one that was too deep to keep.
    too_deep: LastStack,
}

impl LastStacks {
    pub(crate) fn new() -> Self {
        Self {
            stacks: [(); LAST_STACKS].map(|()| LastStack::default()),
            too_deep: LastStack::default(),
        }
    }

    /// The bytes of the stack of `key` in the tree, those of each frame behind
    /// those of its callers, where `append` puts them. It must do the same for equal
    /// frames.
    pub(crate) fn bytes(
        &mut self,
        key: WeightKey,
        tree: &CallTree,
        append: impl FnMut(DisplayFrame, &mut Vec<u8>),
    ) -> &[u8] {
        let mut stack = &mut self.stacks[key.thread as usize % LAST_STACKS];
        stack.move_to(key.node, tree, append);
        if stack.steps.len() > MAX_DEPTH {
            self.too_deep = mem::take(stack);
            stack = &mut self.too_deep;
        }
        &stack.bytes
    }
}

#[derive(Default)]
struct LastStack {
    /// From the root; ids grow, since parents come first.
    steps: Vec<Step>,
    bytes: Vec<u8>,
    /// Nodes of the next stack that are not in this one, leaf first; kept for its
    /// memory.
    missing: Vec<(NodeId, DisplayFrame)>,
}

struct Step {
    node: NodeId,
    /// Where the bytes of its frame end.
    end: usize,
}

impl LastStack {
    fn move_to(
        &mut self,
        node: NodeId,
        tree: &CallTree,
        mut append: impl FnMut(DisplayFrame, &mut Vec<u8>),
    ) {
        self.missing.clear();
        let mut id = node;
        while let Some(node) = tree.get(id) {
            self.return_to(id);
            if self.steps.last().is_some_and(|step| step.node == id) {
                break;
            }
            self.missing.push((id, node.into()));
            id = node.parent;
        }
        if tree.get(id).is_none() {
            self.return_to(NodeId::ROOT);
        }
        self.bytes
            .truncate(self.steps.last().map_or(0, |step| step.end));
        while let Some((node, frame)) = self.missing.pop() {
            append(frame, &mut self.bytes);
            let end = self.bytes.len();
            self.steps.push(Step { node, end });
        }
    }

    /// Drops the nodes that can't be `node` or its callers.
    fn return_to(&mut self, node: NodeId) {
        while self.steps.last().is_some_and(|step| step.node > node) {
            self.steps.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{LabelSetId, Profile, State};

    fn frame(name: &str) -> TestFrame<'_> {
        (name, "a.rb", 1, 1)
    }

    fn key(node: NodeId, thread: u32) -> WeightKey {
        WeightKey {
            node,
            thread,
            labels: LabelSetId(0),
            state: State::Running,
        }
    }

    fn names(stacks: &mut LastStacks, profile: &Profile, key: WeightKey) -> Vec<u8> {
        let append = |frame, bytes: &mut Vec<u8>| {
            bytes.extend(profile.frame_text(frame).name.bytes());
        };
        stacks.bytes(key, &profile.tree, append).to_vec()
    }

    #[test]
    fn any_stack_may_follow_any_other() {
        let mut profile = Profile::new(test_support::cpu_schema());
        let mut node = |names: &[&str]| {
            let frames: Vec<_> = names.iter().copied().map(frame).collect();
            test_support::node(&mut profile, &frames)
        };
        let nodes = [
            (NodeId::ROOT, ""),
            (node(&["a"]), "a"),
            (node(&["a", "b"]), "ab"),
            (node(&["c"]), "c"),
            (node(&["a", "b", "a"]), "aba"),
            (node(&["a", "d", "b"]), "adb"),
            (node(&["a", "b", "d"]), "abd"),
            // Of no tree: a stack without frames.
            (NodeId(99), ""),
        ];
        for (first, first_text) in nodes {
            for (second, second_text) in nodes {
                let mut stacks = LastStacks::new();
                for (node, text) in [(first, first_text), (second, second_text)] {
                    let bytes = names(&mut stacks, &profile, key(node, 1));
                    assert_eq!(bytes, text.as_bytes());
                }
            }
        }
    }

    #[test]
    fn frames_shared_with_the_last_stack_of_the_thread_are_not_looked_at_again() {
        let mut profile = Profile::new(test_support::cpu_schema());
        let mut node = |names: [&str; 3]| test_support::node(&mut profile, &names.map(frame));
        let (one, other) = (node(["a", "b", "c"]), node(["a", "b", "d"]));
        let mut stacks = LastStacks::new();
        let mut looked_at = 0;
        for (node, thread) in [(one, 1), (one, 2), (other, 1), (one, 2)] {
            stacks.bytes(key(node, thread), &profile.tree, |_, _| looked_at += 1);
        }
        assert_eq!(looked_at, 3 + 3 + 1);
    }

    #[test]
    fn a_stack_that_is_very_deep_is_whole_but_not_kept() {
        let mut profile = Profile::new(test_support::cpu_schema());
        let deep = test_support::node(&mut profile, &vec![frame("a"); MAX_DEPTH + 1]);
        let mut stacks = LastStacks::new();
        for _ in 0..2 {
            let bytes = names(&mut stacks, &profile, key(deep, 1));
            assert_eq!(bytes.len(), MAX_DEPTH + 1);
        }
        assert!(stacks.stacks.iter().all(|stack| stack.steps.is_empty()));
        assert_eq!(names(&mut stacks, &profile, key(NodeId(2), 1)), b"aa");
    }
}

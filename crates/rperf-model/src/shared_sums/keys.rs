//! What the keys of shared sums' rows stand for: nodes with their frames, and label sets.

use crate::fold::folded_frame;
use crate::frames::frame_kind::TRUNCATED_FRAME;
use crate::{CallTree, FrameId, Frames, LabelSet, LabelSetId, LabelSets, Node, NodeId, Strings};

/// The tables that keys refer to. They only grow, until stacks are folded; what refers to a row of
/// another table came after it.
#[derive(Debug, Default)]
pub(super) struct KeyTables {
    pub(super) strings: Strings,
    pub(super) frames: Frames,
    pub(super) tree: CallTree,
    pub(super) label_sets: LabelSets,
    /// The frame `[folded]`, if it is there.
    folded: Option<FrameId>,
    /// The node of stacks without any room, if it is there.
    pub(super) truncated: Option<NodeId>,
}

impl KeyTables {
    /// The number of a frame.
    pub(super) fn frame(&mut self, name: &str, path: &str, first_line: u32) -> FrameId {
        self.frames
            .intern_named(&mut self.strings, name, path, first_line)
    }

    /// The number of a label set.
    pub(super) fn label_set<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> LabelSetId {
        let pairs = pairs.into_iter();
        let set: LabelSet = pairs
            .map(|(key, value)| (self.strings.intern(key), self.strings.intern(value)))
            .collect();
        self.label_sets.intern(set)
    }

    /// The number of a node; `None` if it is new and there are `cap` nodes.
    pub(super) fn node_within(&mut self, cap: usize, node: Node) -> Option<NodeId> {
        if self.tree.len() >= cap {
            return self.tree.find(&node);
        }
        Some(self.tree.intern(node))
    }

    /// The node that stands for stacks without any room.
    pub(super) fn truncate(&mut self) -> NodeId {
        if let Some(node) = self.truncated {
            return node;
        }
        let node = Node {
            parent: NodeId::ROOT,
            frame: self.frame(TRUNCATED_FRAME.0, TRUNCATED_FRAME.1, 0),
            line: 0,
        };
        *self.truncated.insert(self.tree.intern(node))
    }

    /// The frame `[folded]`.
    pub(super) fn folded_frame(&mut self) -> FrameId {
        *self
            .folded
            .get_or_insert_with(|| folded_frame(&mut self.strings, &mut self.frames))
    }

    /// The last caller that a stack has whose `node` is a leaf under `[folded]`; else the node.
    pub(super) fn home(&self, node: NodeId) -> NodeId {
        let above = self.tree.get(node).and_then(|it| self.tree.get(it.parent));
        match above.filter(|above| Some(above.frame) == self.folded) {
            Some(folded) => folded.parent,
            None => node,
        }
    }

    /// The node for a leaf whose callers below `home` are folded; `None` if it needs a node more than
    /// `cap`.
    pub(super) fn leaf_within(
        &mut self,
        cap: usize,
        home: NodeId,
        frame: FrameId,
        line: u32,
    ) -> Option<NodeId> {
        let folded = Node {
            parent: home,
            frame: self.folded_frame(),
            line: 0,
        };
        let parent = self.node_within(cap, folded)?;
        let leaf = Node {
            parent,
            frame,
            line,
        };
        self.node_within(cap, leaf)
    }
}

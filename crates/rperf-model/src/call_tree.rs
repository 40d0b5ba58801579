//! The calling-context tree: nodes of (parent, frame, line), parents first.
//! Any thread, no I/O.

use crate::FrameId;
use rustc_hash::FxHashMap;

/// Index of a node in a [`CallTree`]. Node 0 is the root, the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root: the stack without frames.
    pub const ROOT: NodeId = NodeId(0);
}

/// One node: the stack of its parent plus one frame at one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The caller's node; always a smaller id than the node's own.
    pub parent: NodeId,
    /// The frame that this node adds.
    pub frame: FrameId,
    /// The line in execution, or 0 where none is known.
    pub line: u32,
}

/// The nodes, parents before children. The root has no row of its own.
#[derive(Debug, Clone, Default)]
pub struct CallTree {
    nodes: Vec<Node>,
    index: FxHashMap<Node, NodeId>,
}

impl CallTree {
    /// The node for `node`'s parent, frame and line, which is added if it is new.
    pub fn intern(&mut self, node: Node) -> NodeId {
        *self.index.entry(node).or_insert_with(|| {
            debug_assert!(
                node.parent.0 as usize <= self.nodes.len(),
                "parents come first"
            );
            self.nodes.push(node);
            NodeId(self.nodes.len() as u32)
        })
    }

    /// The node for `node`'s parent, frame and line, if there is one.
    pub fn find(&self, node: &Node) -> Option<NodeId> {
        self.index.get(node).copied()
    }

    /// The node with this id; `None` for the root and for ids not in the tree.
    pub fn get(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get((id.0 as usize).wrapping_sub(1))
    }

    /// The nodes from `id` up to, and without, the root: leaf first.
    pub fn stack(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.get(id), |node| self.get(node.parent))
    }

    /// How many nodes there are, the root not counted.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// All nodes with their ids, parents first.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(row, node)| (NodeId(row as u32 + 1), node))
    }
}

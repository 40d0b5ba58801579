//! The calling-context tree: nodes of (parent, frame, line), parents first. Built by the engine's
//! worker, traces and the readers, walked by reports and formats. Any thread, no I/O.

use crate::FrameId;
use rustc_hash::FxHashMap;

/// Index of a node in a [`CallTree`]. Node 0 is the root, the empty stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The root: the stack without frames.
    pub const ROOT: NodeId = NodeId(0);
}

/// A node: the stack of its parent plus one frame at one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// The caller's node; always a smaller id than the node's own.
    pub parent: NodeId,
    /// The frame that this node adds.
    pub frame: FrameId,
    /// The line in execution, or 0 where none is known.
    pub line: u32,
}

/// A line as nodes have it, of what a VM or a file says: evaluated code can have a negative one, which
/// is no line of any file.
#[inline]
pub fn shown_line(line: i64) -> u32 {
    u32::try_from(line).unwrap_or(0)
}

/// The nodes, parents before children. The root has no row of its own.
///
/// Most nodes have one child, or none. So each node knows its first child, and only
/// further ones are in a hash table: a large tree stays small, and growing a branch
/// looks at the end of it alone.
#[derive(Debug, Clone)]
pub struct CallTree {
    nodes: Vec<Node>,
    /// For the root and each node the child that came first, or [`NONE`].
    first_children: Vec<NodeId>,
    /// All other nodes.
    others: FxHashMap<Node, NodeId>,
}

/// No node: the root is nobody's child.
const NONE: NodeId = NodeId::ROOT;

impl Default for CallTree {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            first_children: vec![NONE],
            others: FxHashMap::default(),
        }
    }
}

impl CallTree {
    /// A tree without nodes, with room for so many.
    pub(crate) fn with_capacity(nodes: usize) -> Self {
        let mut tree = Self::default();
        tree.nodes.reserve(nodes);
        tree.first_children.reserve(nodes);
        tree
    }

    /// The node for `node`'s parent, frame and line, which is added if it is new.
    pub fn intern(&mut self, node: Node) -> NodeId {
        let next = NodeId(self.nodes.len() as u32 + 1);
        debug_assert!(node.parent < next, "parents come first");
        let id = match self.first_children.get_mut(node.parent.0 as usize) {
            Some(first) if *first == NONE => {
                *first = next;
                next
            }
            Some(first) if self.nodes[first.0 as usize - 1] == node => *first,
            _ => *self.others.entry(node).or_insert(next),
        };
        if id == next {
            self.nodes.push(node);
            self.first_children.push(NONE);
        }
        id
    }

    /// The node for `node`'s parent, frame and line, if there is one.
    pub fn find(&self, node: &Node) -> Option<NodeId> {
        let first = *self.first_children.get(node.parent.0 as usize)?;
        match self.get(first)? {
            found if found == node => Some(first),
            _ => self.others.get(node).copied(),
        }
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

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        let each = size_of::<Node>() + size_of::<NodeId>();
        self.len() * each + crate::memory::of_map(&self.others)
    }

    /// All nodes with their ids, parents first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Node)> + ExactSizeIterator {
        self.nodes
            .iter()
            .enumerate()
            .map(|(row, node)| (NodeId(row as u32 + 1), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn node(parent: NodeId, frame: u32, line: u32) -> Node {
        Node {
            parent,
            frame: FrameId(frame),
            line,
        }
    }

    #[test]
    fn every_child_is_one_node_whichever_came_first() {
        let mut tree = CallTree::default();
        let a = tree.intern(node(NodeId::ROOT, 0, 1));
        let below_a: Vec<_> = (0..5).map(|line| tree.intern(node(a, 1, line))).collect();
        let b = tree.intern(node(NodeId::ROOT, 0, 2));
        let below_b = tree.intern(node(b, 1, 0));
        assert_eq!(below_a, [2, 3, 4, 5, 6].map(NodeId));
        assert_eq!((a, b, below_b), (NodeId(1), NodeId(7), NodeId(8)));
        let all: Vec<Node> = tree.iter().map(|(_, node)| *node).collect();
        for (id, node) in (1..).map(NodeId).zip(&all) {
            assert_eq!((tree.find(node), tree.intern(*node)), (Some(id), id));
        }
        assert_eq!(tree.len(), all.len());
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let mut tree = CallTree::default();
        assert_eq!(tree.find(&node(NodeId::ROOT, 0, 0)), None);
        let a = tree.intern(node(NodeId::ROOT, 0, 0));
        for missing in [
            node(NodeId::ROOT, 0, 1),
            node(NodeId::ROOT, 1, 0),
            node(a, 0, 0),
            node(NodeId(2), 0, 0),
        ] {
            assert_eq!(tree.find(&missing), None);
        }
    }

    #[test]
    fn it_does_as_a_mere_map_does() {
        let mut tree = CallTree::default();
        let mut map: HashMap<Node, NodeId> = HashMap::new();
        let mut state: u64 = 1;
        let mut random = |limit: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % limit
        };
        for _ in 0..20_000 {
            let parent = NodeId(random(map.len() as u64 / 2 + 1) as u32);
            let node = node(parent, random(3) as u32, random(3) as u32);
            assert_eq!(tree.find(&node), map.get(&node).copied());
            let next = NodeId(map.len() as u32 + 1);
            let expected = *map.entry(node).or_insert(next);
            assert_eq!(tree.intern(node), expected);
        }
        assert_eq!(tree.len(), map.len());
        assert!(map.len() > 5_000);
    }
}

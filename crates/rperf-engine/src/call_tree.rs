//! Interning of captured stacks: frame addresses to nodes of the call tree.
//! Called under the GVL, right after a backtrace was taken; allocates only when
//! a stack is new.

use rperf_model::NodeId;
use rustc_hash::FxHashMap;
use std::mem::replace;
use std::ops::Range;

/// A frame as the VM gives it: an opaque word, here only compared and kept.
pub type FrameWord = usize;

/// A line as profiles have it, of what the VM says: a negative one has wrapped.
#[inline]
pub(crate) fn shown_line(line: u32) -> u32 {
    rperf_model::shown_line((line as i32).into())
}

/// A stack as the bridge captured it, leaf first; `lines` may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// The frames.
    pub frames: &'a [FrameWord],
    /// Their lines.
    pub lines: &'a [u32],
    /// Frames at the root may be missing: there was no room for them.
    pub cut: bool,
}

/// One node: its parent, the index of its frame in the frame table, and a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedNode {
    /// The caller; a smaller id than the node's own, or the root.
    pub parent: NodeId,
    /// Row of [`CapturedTree::frames`], or [`TRUNCATED`].
    pub frame: u32,
    /// Line in execution, or 0.
    pub line: u32,
}

impl CapturedNode {
    /// Room for so many nodes, whose memory the system has already given: then they can be copied
    /// in a moment.
    pub fn room(nodes: usize) -> Vec<CapturedNode> {
        let any = CapturedNode {
            parent: NodeId::ROOT,
            frame: TRUNCATED,
            line: 0,
        };
        let mut room = vec![any; nodes];
        room.clear();
        room
    }
}

/// The frame of nodes that stand for stacks beyond the cap.
pub const TRUNCATED: u32 = u32::MAX;

/// How much a call tree holds. A node takes 20 to 80 bytes, but a frame keeps a
/// method's code from being collected: kilobytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeSize {
    /// Nodes.
    pub nodes: usize,
    /// Different frames.
    pub frames: usize,
}

/// What a tree holds at most before its epoch must end.
const FULL: TreeSize = TreeSize {
    nodes: 1 << 19,
    frames: 1 << 15,
};

/// The call tree as it is captured. Nodes and frames only ever grow, up to a
/// cap; stacks that would need more are folded into one `[truncated]` node.
///
/// Most nodes have one child, or none: each knows its first child, and only further ones
/// are in a hash table.
#[derive(Debug)]
pub struct CapturedTree {
    nodes: Vec<CapturedNode>,
    /// For the root and each node the child that came first, or [`NONE`].
    first_children: Vec<NodeId>,
    /// The children that came later.
    others: FxHashMap<(NodeId, FrameWord, u32), NodeId>,
    frames: Vec<FrameWord>,
    frame_index: FxHashMap<FrameWord, u32>,
    /// Frames that [`CapturedTree::take_new_frames`] has handed out.
    handed_out: usize,
    truncated: Option<NodeId>,
    node_cap: usize,
}

/// No node: the root is nobody's child.
const NONE: NodeId = NodeId::ROOT;

impl Default for CapturedTree {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            first_children: vec![NONE],
            others: FxHashMap::default(),
            frames: Vec::new(),
            frame_index: FxHashMap::default(),
            handed_out: 0,
            truncated: None,
            node_cap: 0,
        }
    }
}

/// The stack that one thread had at its last capture. The part from the root that
/// the next stack shares with it needs no look-up.
#[derive(Debug, Default)]
pub struct LastStack {
    /// Leaf first, as the VM gives them.
    frames: Vec<FrameWord>,
    lines: Vec<u32>,
    /// Root first; shorter than `frames` if the stack had to be folded.
    nodes: Vec<NodeId>,
}

impl LastStack {
    /// Frames that are known.
    pub fn depth(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.frames.capacity() * size_of::<FrameWord>()
            + self.lines.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<NodeId>()
    }

    /// Forgets all but the first `depth` frames from the root.
    pub fn keep(&mut self, depth: usize) {
        self.nodes.truncate(depth);
    }

    /// How many frames from the root `stack` shares with this one.
    #[inline]
    fn shared_with(&self, stack: &[FrameWord], lines: &[u32]) -> usize {
        let shared = equal_from_the_end(&self.frames, stack).min(self.nodes.len());
        match (self.lines.is_empty(), lines.is_empty()) {
            (true, true) => shared,
            (false, false) => equal_from_the_end(&self.lines, lines).min(shared),
            _ => 0,
        }
    }

    fn set(&mut self, stack: &[FrameWord], lines: &[u32]) {
        self.frames.clear();
        self.frames.extend_from_slice(stack);
        self.lines.clear();
        self.lines.extend_from_slice(lines);
    }
}

/// Elements that the ends of `a` and `b` have in common; by blocks, which the
/// compiler turns into vector instructions.
#[inline]
pub(crate) fn equal_from_the_end<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    const BLOCK: usize = 8;
    let length = a.len().min(b.len());
    let (a, b) = (&a[a.len() - length..], &b[b.len() - length..]);
    let blocks = a.rchunks_exact(BLOCK).zip(b.rchunks_exact(BLOCK));
    let equal = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a[..length - equal]
        .iter()
        .rev()
        .zip(b[..length - equal].iter().rev());
    equal + rest.take_while(|(a, b)| a == b).count()
}

/// A node, and whether its stack had to be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interned {
    /// The stack's node.
    pub node: NodeId,
    /// Whether the node is the `[truncated]` one.
    pub truncated: bool,
}

impl CapturedTree {
    /// An empty tree that will hold at most `node_cap` nodes.
    pub fn new(node_cap: usize) -> Self {
        Self {
            node_cap,
            ..Self::default()
        }
    }

    /// Its nodes, and its frames.
    pub fn into_parts(self) -> (Vec<CapturedNode>, Vec<FrameWord>) {
        (self.nodes, self.frames)
    }

    /// Interns a stack given leaf first, as the VM gives it. `lines` is empty or
    /// as long as `stack`. New frames are appended to [`CapturedTree::frames`].
    #[inline]
    pub fn intern(&mut self, stack: &[FrameWord], lines: &[u32], last: &mut LastStack) -> Interned {
        let shared = last.shared_with(stack, lines);
        last.nodes.truncate(shared);
        let mut parent = last.nodes.last().copied().unwrap_or(NodeId::ROOT);
        if shared == stack.len() && shared == last.frames.len() {
            return Interned {
                node: parent,
                truncated: false,
            };
        }
        last.set(stack, lines);
        for row in (0..stack.len() - shared).rev() {
            let line = shown_line(lines.get(row).copied().unwrap_or(0));
            let Some(node) = self.child(parent, stack[row], line) else {
                return Interned {
                    node: self.truncated_node(),
                    truncated: true,
                };
            };
            last.nodes.push(node);
            parent = node;
        }
        Interned {
            node: parent,
            truncated: false,
        }
    }

    /// All nodes in the order of their ids, which start at 1.
    pub fn nodes(&self) -> &[CapturedNode] {
        &self.nodes
    }

    /// The unique frames: the garbage collector's roots.
    pub fn frames(&self) -> &[FrameWord] {
        &self.frames
    }

    /// The rows of the frames that are new since this was asked last.
    pub fn take_new_frames(&mut self) -> Range<usize> {
        let known = replace(&mut self.handed_out, self.frames.len());
        known..self.frames.len()
    }

    /// Whether so much is held that the epoch must end.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.holds(FULL)
    }

    /// Whether it holds so much more than `known`, what earlier epochs had, that the
    /// epoch should end. A program that runs the same code all the time comes to
    /// rest below that. One that makes code as it runs (a template evaluated for
    /// each request) doesn't: its frames are new and have old names.
    #[inline]
    pub fn has_outgrown(&self, known: TreeSize) -> bool {
        self.holds(TreeSize {
            nodes: (known.nodes * 5 / 4 + (1 << 14)).min(FULL.nodes),
            frames: (known.frames * 5 / 4 + (1 << 7)).min(FULL.frames),
        })
    }

    #[inline]
    fn holds(&self, size: TreeSize) -> bool {
        self.nodes.len() >= size.nodes || self.frames.len() >= size.frames
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let node = size_of::<CapturedNode>();
        let entry = size_of::<((NodeId, FrameWord, u32), NodeId)>() + 1;
        let frame_entry = size_of::<(FrameWord, u32)>() + 1;
        self.nodes.capacity() * node
            + self.first_children.capacity() * size_of::<NodeId>()
            + self.others.capacity() * entry
            + self.frames.capacity() * size_of::<FrameWord>()
            + self.frame_index.capacity() * frame_entry
    }

    /// The node of `frame` at `line` under `parent`; `None` if there is no room for it.
    #[inline]
    pub(crate) fn child(&mut self, parent: NodeId, frame: FrameWord, line: u32) -> Option<NodeId> {
        let first = self.first_children.get(parent.0 as usize).copied()?;
        if first != NONE {
            if self.is_node(first, frame, line) {
                return Some(first);
            }
            if let Some(&node) = self.others.get(&(parent, frame, line)) {
                return Some(node);
            }
        }
        if self.nodes.len() >= self.node_cap {
            return None;
        }
        let row = match self.frame_index.get(&frame) {
            Some(&row) => row,
            None => {
                let row = self.frames.len() as u32;
                self.frames.push(frame);
                self.frame_index.insert(frame, row);
                row
            }
        };
        let node = self.push(CapturedNode {
            parent,
            frame: row,
            line,
        });
        if first == NONE {
            self.first_children[parent.0 as usize] = node;
        } else {
            self.others.insert((parent, frame, line), node);
        }
        Some(node)
    }

    /// Whether a node is of this frame at this line.
    #[inline]
    fn is_node(&self, id: NodeId, frame: FrameWord, line: u32) -> bool {
        let node = self.nodes[id.0 as usize - 1];
        node.line == line && self.frames[node.frame as usize] == frame
    }

    fn push(&mut self, node: CapturedNode) -> NodeId {
        self.nodes.push(node);
        self.first_children.push(NONE);
        NodeId(self.nodes.len() as u32)
    }

    /// The node of stacks that found no room.
    pub(crate) fn truncated_node(&mut self) -> NodeId {
        if let Some(node) = self.truncated {
            return node;
        }
        let node = self.push(CapturedNode {
            parent: NodeId::ROOT,
            frame: TRUNCATED,
            line: 0,
        });
        *self.truncated.insert(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack_of(tree: &CapturedTree, node: NodeId) -> Vec<(FrameWord, u32)> {
        let mut stack = Vec::new();
        let mut id = node;
        while id != NodeId::ROOT {
            let node = tree.nodes()[id.0 as usize - 1];
            assert!(node.parent < id, "parents come first");
            stack.push((tree.frames()[node.frame as usize], node.line));
            id = node.parent;
        }
        stack
    }

    #[test]
    fn lines_below_zero_are_none() {
        let mut tree = CapturedTree::new(10);
        let lines = [7, -1_i32 as u32, -2_i32 as u32];
        let interned = tree.intern(&[3, 2, 1], &lines, &mut LastStack::default());
        assert_eq!(stack_of(&tree, interned.node), [(3, 7), (2, 0), (1, 0)]);
    }

    proptest! {
        #[test]
        fn a_node_gives_back_the_stack_that_was_interned(
            stacks in prop::collection::vec((0usize..3, prop::collection::vec((1usize..9, 0u32..3), 0..12)), 1..60)
        ) {
            let mut tree = CapturedTree::new(1 << 20);
            let mut threads = [LastStack::default(), LastStack::default(), LastStack::default()];
            for (thread, stack) in stacks {
                let (frames, lines): (Vec<_>, Vec<_>) = stack.iter().copied().unzip();
                let last = &mut threads[thread];
                let interned = tree.intern(&frames, &lines, last);
                prop_assert!(!interned.truncated);
                prop_assert_eq!(stack_of(&tree, interned.node), stack);
            }
            let unique: std::collections::HashSet<_> = tree.frames().iter().collect();
            prop_assert_eq!(unique.len(), tree.frames().len(), "each frame is there once");
        }
    }

    #[test]
    fn equal_stacks_share_a_node_and_stacks_beyond_the_cap_are_folded() {
        let mut tree = CapturedTree::new(3);
        let mut last = LastStack::default();
        let first = tree.intern(&[3, 2, 1], &[], &mut last);
        let again = tree.intern(&[3, 2, 1], &[], &mut LastStack::default());
        assert_eq!((first, first.truncated), (again, false));
        let beyond = tree.intern(&[4, 2, 1], &[], &mut last);
        assert!(beyond.truncated);
        assert_eq!(beyond, tree.intern(&[5, 4, 1], &[], &mut last));
        assert_eq!(tree.nodes().len(), 4);
        assert_eq!(tree.intern(&[3, 2, 1], &[], &mut last), first);
        assert_eq!(tree.intern(&[], &[], &mut last).node, NodeId::ROOT);
        assert!(tree.memory() > 0);
    }
}

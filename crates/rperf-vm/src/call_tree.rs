//! Interning of captured stacks: frame addresses to nodes of the call tree.
//! Called under the GVL; allocates only when a stack is new.

use crate::ids::FrameWord;
use crate::stack_digest::StackDigest;
use rperf_model::NodeId;
use rustc_hash::FxHashMap;
use std::mem::replace;
use std::ops::Range;

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

/// A node: its parent, the index of its frame in the frame table, and a line.
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

/// The frame of the node that stands for stacks without any room.
pub const TRUNCATED: u32 = u32::MAX;

/// The frame of nodes below which are leaves of stacks that found no room: callers are missing
/// there.
pub const FOLDED: u32 = u32::MAX - 1;

/// How much a call tree holds. A node takes 20 to 80 bytes, but a frame keeps a
/// method's code from being collected: kilobytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeSize {
    /// Nodes.
    pub nodes: usize,
    /// Different frames.
    pub frames: usize,
}

/// Frames that a tree holds at most before its epoch must end.
const FULL_FRAMES: usize = 1 << 15;

/// Divides the cap: such a part of it is further room, for leaves of stacks that find no room, and as
/// much again for those that find none there either.
const LEAVES_PART: usize = 8;

/// The call tree as it is captured. Nodes and frames only ever grow, up to a cap. Stacks that would
/// need more keep the callers that are known and their leaf; without room for that, they are
/// one `[truncated]` node.
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
    /// The nodes with the frame [`FOLDED`], by their parent.
    folded: FxHashMap<NodeId, NodeId>,
    node_cap: usize,
    frame_cap: usize,
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
            folded: FxHashMap::default(),
            node_cap: 0,
            frame_cap: usize::MAX,
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
    /// Root first; shorter than `frames` if the stack found no room.
    nodes: Vec<NodeId>,
    /// The digest of the stack of the last wait that has one, and its node.
    wait: Option<(StackDigest, NodeId)>,
}

impl LastStack {
    /// Frames that are known.
    #[inline]
    pub fn depth(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.frames.capacity() * size_of::<FrameWord>()
            + self.lines.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<NodeId>()
    }

    /// Forgets all but the first `depth` frames from the root, and the wait.
    #[inline]
    pub fn keep(&mut self, depth: usize) {
        self.nodes.truncate(depth);
        self.wait = None;
    }

    /// The stack that was interned last is that of a wait, and has this digest.
    #[inline]
    pub fn note_wait(&mut self, digest: StackDigest) {
        let is_whole = self.nodes.len() == self.frames.len();
        let node = self.nodes.last().filter(|_| is_whole);
        self.wait = node.map(|node| (digest, *node));
    }

    /// The node of the stack with this digest, if it is that of the last wait.
    #[inline]
    pub fn wait_with(&self, digest: StackDigest) -> Option<NodeId> {
        let (known, node) = self.wait?;
        (known == digest).then_some(node)
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

    #[inline]
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
pub fn equal_from_the_end<T: PartialEq>(a: &[T], b: &[T]) -> usize {
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

/// A node, and whether its stack is lost.
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

    /// The tree, which will hold at most `frame_cap` different frames.
    pub fn with_frames_up_to(self, frame_cap: usize) -> Self {
        Self { frame_cap, ..self }
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
                let line = lines.first().copied().unwrap_or(0);
                return self.leaf_without_room(parent, stack[0], shown_line(line));
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
    #[inline]
    pub fn nodes(&self) -> &[CapturedNode] {
        &self.nodes
    }

    /// The unique frames: the garbage collector's roots.
    #[inline]
    pub fn frames(&self) -> &[FrameWord] {
        &self.frames
    }

    /// The rows of the frames that are new since this was asked last.
    #[inline]
    pub fn take_new_frames(&mut self) -> Range<usize> {
        let known = replace(&mut self.handed_out, self.frames.len());
        known..self.frames.len()
    }

    /// A tree with these nodes alone, and their callers; and for the root and each node of this tree the
    /// node there, or the root.
    pub fn with_only(&self, nodes: impl IntoIterator<Item = NodeId>) -> (Self, Vec<NodeId>) {
        let mut is_kept = vec![false; self.first_children.len()];
        for mut node in nodes {
            while node != NodeId::ROOT && !std::mem::replace(&mut is_kept[node.0 as usize], true) {
                node = self.nodes[node.0 as usize - 1].parent;
            }
        }
        let mut kept = Self::new(self.node_cap).with_frames_up_to(self.frame_cap);
        let mut map = vec![NodeId::ROOT; self.first_children.len()];
        for (row, node) in self.nodes.iter().enumerate() {
            let id = row + 1;
            if is_kept[id] {
                map[id] = kept.copy(*node, map[node.parent.0 as usize], &self.frames);
            }
        }
        (kept, map)
    }

    /// Adds a node of a tree with these frames below `parent`.
    fn copy(&mut self, node: CapturedNode, parent: NodeId, frames: &[FrameWord]) -> NodeId {
        match node.frame {
            TRUNCATED => self.truncated_node(),
            FOLDED => self.folded_node(usize::MAX, parent).unwrap_or(NodeId::ROOT),
            row => self
                .child_within(usize::MAX, parent, frames[row as usize], node.line)
                .unwrap_or(NodeId::ROOT),
        }
    }

    /// Whether so much is held that the epoch must end.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.holds(self.full())
    }

    /// What it holds at most before its epoch must end.
    #[inline]
    fn full(&self) -> TreeSize {
        TreeSize {
            nodes: self.node_cap / 2,
            frames: FULL_FRAMES,
        }
    }

    /// Whether it holds so much more than `known`, what earlier epochs had, that the
    /// epoch should end. A program that runs the same code all the time comes to
    /// rest below that. One that makes code as it runs (a template evaluated for
    /// each request) doesn't: its frames are new and have old names.
    #[inline]
    pub fn has_outgrown(&self, known: TreeSize) -> bool {
        let full = self.full();
        self.holds(TreeSize {
            nodes: (known.nodes * 5 / 4 + (1 << 14)).min(full.nodes),
            frames: (known.frames * 5 / 4 + (1 << 7)).min(full.frames),
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
            + self.folded.capacity() * (size_of::<(NodeId, NodeId)>() + 1)
    }

    /// The node of `frame` at `line` under `parent`; `None` if there is no room for it.
    #[inline]
    pub fn child(&mut self, parent: NodeId, frame: FrameWord, line: u32) -> Option<NodeId> {
        self.child_within(self.node_cap, parent, frame, line)
    }

    /// The node of `frame` at `line` under `parent`, where there are `cap` nodes at most.
    #[inline]
    fn child_within(
        &mut self,
        cap: usize,
        parent: NodeId,
        frame: FrameWord,
        line: u32,
    ) -> Option<NodeId> {
        let first = self.first_children.get(parent.0 as usize).copied()?;
        if first != NONE {
            if self.is_node(first, frame, line) {
                return Some(first);
            }
            if let Some(&node) = self.others.get(&(parent, frame, line)) {
                return Some(node);
            }
        }
        if self.nodes.len() >= cap {
            return None;
        }
        let row = match self.frame_index.get(&frame) {
            Some(&row) => row,
            None if self.frames.len() >= self.frame_cap => return None,
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

    #[inline]
    fn push(&mut self, node: CapturedNode) -> NodeId {
        self.nodes.push(node);
        self.first_children.push(NONE);
        NodeId(self.nodes.len() as u32)
    }

    /// The node for a stack that found no room: its leaf, below `[folded]` below `caller`, the last
    /// node of it that is there; or else below `[folded]` alone.
    #[cold]
    pub fn leaf_without_room(&mut self, caller: NodeId, frame: FrameWord, line: u32) -> Interned {
        let part = self.node_cap / LEAVES_PART;
        for (home, room) in [(caller, part), (NodeId::ROOT, 2 * part)] {
            let cap = self.node_cap + room;
            let folded = self.folded_node(cap, home);
            let node = folded.and_then(|folded| self.child_within(cap, folded, frame, line));
            if let Some(node) = node {
                return Interned {
                    node,
                    truncated: false,
                };
            }
        }
        Interned {
            node: self.truncated_node(),
            truncated: true,
        }
    }

    fn folded_node(&mut self, cap: usize, home: NodeId) -> Option<NodeId> {
        if let Some(&node) = self.folded.get(&home) {
            return Some(node);
        }
        if self.nodes.len() >= cap {
            return None;
        }
        let node = self.push(CapturedNode {
            parent: home,
            frame: FOLDED,
            line: 0,
        });
        self.folded.insert(home, node);
        Some(node)
    }

    /// The node of stacks without any room.
    pub fn truncated_node(&mut self) -> NodeId {
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
mod tests;

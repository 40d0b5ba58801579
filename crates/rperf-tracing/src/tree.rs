//! The call tree of a traced session: who called whom, without any numbers. Nodes only ever come,
//! up to a cap. Under the GVL, at events; a call that is known needs one look.

use crate::event::TracedKind;
use rperf_vm::FrameWord;
use rustc_hash::FxHashMap;

pub(crate) mod counts;
pub(crate) mod folds;
pub(crate) mod snapshot;
pub(crate) mod state_times;
pub(crate) mod thread;
pub(crate) mod threads;

/// Nodes at most: what would need more is `[truncated]`.
const NODE_CAP: usize = 1 << 20;

/// Entries of the table in front of the index: 2 to this power.
const KNOWN_BITS: u32 = 14;

/// The root of all stacks.
pub(crate) const ROOT: u32 = 0;

/// A frame as the tree knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TracedFrame {
    /// The frame as the VM shows it, or the class that has a method of C.
    pub word: FrameWord,
    /// The name of that method; 0 for other frames.
    pub method: usize,
}

/// A node of the call tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TracedNode {
    pub(crate) frame: TracedFrame,
    pub(crate) parent: u32,
    /// The row of its frame in the list of frames.
    pub(crate) row: u32,
    /// How many frames it has from the root on, with itself.
    pub(crate) level: u32,
    pub(crate) kind: TracedKind,
}

/// The tree.
#[derive(Debug)]
pub(crate) struct TracedTree {
    nodes: Vec<TracedNode>,
    /// By a hash of parent and frame, a node that may be the one.
    known: Box<[u32; 1 << KNOWN_BITS]>,
    index: FxHashMap<(u32, TracedFrame, TracedKind), u32>,
    frames: Vec<TracedFrame>,
    rows: FxHashMap<TracedFrame, u32>,
    /// By row: such a frame has called something that isn't below it, but beyond the limits.
    leads_elsewhere: Vec<bool>,
    /// Frames that somebody has been told of.
    handed_out: usize,
    truncated: Option<u32>,
    cap: usize,
    /// Below this level, all that is called is right below the last node.
    deepest: u32,
}

impl Default for TracedTree {
    fn default() -> Self {
        Self::with_cap(NODE_CAP)
    }
}

impl TracedTree {
    pub(crate) fn with_cap(cap: usize) -> Self {
        let root = TracedNode {
            frame: TracedFrame { word: 0, method: 0 },
            parent: u32::MAX,
            row: u32::MAX,
            level: 0,
            kind: TracedKind::None,
        };
        Self {
            nodes: vec![root],
            known: Box::new([ROOT; 1 << KNOWN_BITS]),
            index: FxHashMap::default(),
            frames: Vec::new(),
            rows: FxHashMap::default(),
            leads_elsewhere: Vec::new(),
            handed_out: 0,
            truncated: None,
            cap,
            deepest: u32::MAX,
        }
    }

    /// From now on there are so many levels, and one more for the calls of what is deeper. Before
    /// any node comes.
    pub(crate) fn limit(&mut self, levels: u32) {
        self.deepest = levels;
    }

    /// The child of `parent` with this frame.
    #[inline]
    pub(crate) fn child(&mut self, parent: u32, frame: TracedFrame, kind: TracedKind) -> u32 {
        let mixed = frame.word as u64
            ^ (frame.method as u64).rotate_left(29)
            ^ (u64::from(parent) << 40)
            ^ ((kind as u64) << 36);
        let place = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - KNOWN_BITS);
        let place = place as usize & ((1 << KNOWN_BITS) - 1);
        let guess = self.known[place];
        if let Some(node) = self.nodes.get(guess as usize)
            && node.parent == parent
            && node.frame == frame
            && node.kind == kind
        {
            return guess;
        }
        let found = self.look_up(parent, frame, kind);
        self.known[place] = found;
        found
    }

    #[cold]
    #[inline(never)]
    fn look_up(&mut self, parent: u32, frame: TracedFrame, kind: TracedKind) -> u32 {
        if Some(parent) == self.truncated {
            return parent;
        }
        let caller = self.node(parent);
        let parent = match caller.level > self.deepest {
            true => {
                self.note_elsewhere(caller.row);
                caller.parent
            }
            false => parent,
        };
        if let Some(&node) = self.index.get(&(parent, frame, kind)) {
            return node;
        }
        if self.nodes.len() >= self.cap {
            self.note_elsewhere(caller.row);
            return self.truncated_node();
        }
        let row = match self.rows.get(&frame) {
            Some(&row) => row,
            None => {
                let row = self.frames.len() as u32;
                self.frames.push(frame);
                self.leads_elsewhere.push(false);
                self.rows.insert(frame, row);
                row
            }
        };
        let node = self.push(TracedNode {
            frame,
            parent,
            row,
            level: self.node(parent).level + 1,
            kind,
        });
        self.index.insert((parent, frame, kind), node);
        node
    }

    fn note_elsewhere(&mut self, row: u32) {
        if let Some(leads) = self.leads_elsewhere.get_mut(row as usize) {
            *leads = true;
        }
    }

    fn push(&mut self, node: TracedNode) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn truncated_node(&mut self) -> u32 {
        if let Some(node) = self.truncated {
            return node;
        }
        let node = TracedNode {
            parent: ROOT,
            ..self.nodes[ROOT as usize]
        };
        let node = self.push(node);
        *self.truncated.insert(node)
    }

    #[inline]
    pub(crate) fn node(&self, node: u32) -> TracedNode {
        self.nodes[node as usize]
    }

    /// All nodes, parents first.
    pub(crate) fn nodes(&self) -> &[TracedNode] {
        &self.nodes
    }

    /// The node of what found no room, if there was such.
    pub(crate) fn truncated(&self) -> Option<u32> {
        self.truncated
    }

    /// All frames, in the order of their rows.
    pub(crate) fn frames(&self) -> &[TracedFrame] {
        &self.frames
    }

    /// The frames that are new since this was asked last.
    #[inline]
    pub(crate) fn take_new_frames(&mut self) -> &[TracedFrame] {
        let known = std::mem::replace(&mut self.handed_out, self.frames.len());
        &self.frames[known..]
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn has_new_frames(&self) -> bool {
        self.handed_out != self.frames.len()
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        let entry = size_of::<((u32, TracedFrame, TracedKind), u32)>() + 1;
        let row = size_of::<(TracedFrame, u32)>() + 1;
        size_of_val(&*self.known)
            + self.nodes.capacity() * size_of::<TracedNode>()
            + self.index.capacity() * entry
            + self.frames.capacity() * size_of::<TracedFrame>()
            + self.rows.capacity() * row
            + self.leads_elsewhere.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(word: usize) -> TracedFrame {
        TracedFrame { word, method: 0 }
    }

    #[test]
    fn a_child_is_told_by_parent_frame_and_kind() {
        let mut tree = TracedTree::default();
        let method = tree.child(ROOT, frame(8), TracedKind::Method);
        let block = tree.child(ROOT, frame(8), TracedKind::Block);
        let below = tree.child(method, frame(8), TracedKind::Method);
        assert_eq!([method, block, below], [1, 2, 3]);
        assert_eq!(tree.child(ROOT, frame(8), TracedKind::Method), method);
        assert_eq!((tree.frames().len(), tree.take_new_frames().len()), (1, 1));
        assert!(!tree.has_new_frames() && tree.take_new_frames().is_empty());
    }

    #[test]
    fn what_finds_no_room_is_truncated_and_known_nodes_stay_known() {
        let mut tree = TracedTree::with_cap(3);
        let first = tree.child(ROOT, frame(1), TracedKind::Method);
        let second = tree.child(first, frame(2), TracedKind::Method);
        let beyond = tree.child(second, frame(3), TracedKind::Method);
        assert_eq!(tree.truncated(), Some(beyond));
        assert_eq!(tree.child(beyond, frame(4), TracedKind::Block), beyond);
        assert_eq!(tree.leads_elsewhere, [false, true]);
        assert_eq!(tree.child(first, frame(4), TracedKind::Block), beyond);
        assert_eq!(tree.child(first, frame(2), TracedKind::Method), second);
        assert_eq!(tree.nodes().len(), 4);
        assert!(tree.memory() > 4 << KNOWN_BITS);
    }

    #[test]
    fn what_is_deeper_than_the_limit_is_right_below_the_last_level() {
        let mut tree = TracedTree::default();
        tree.limit(2);
        let first = tree.child(ROOT, frame(1), TracedKind::Method);
        let last = tree.child(first, frame(2), TracedKind::Method);
        let deeper = tree.child(last, frame(3), TracedKind::Method);
        let deepest = tree.child(deeper, frame(4), TracedKind::Method);
        assert_eq!([deeper, deepest].map(|it| tree.node(it).parent), [last; 2]);
        assert_eq!(tree.leads_elsewhere, [false, false, true, false]);
        assert_eq!(tree.child(deepest, frame(3), TracedKind::Method), deeper);
        assert_eq!(tree.child(deepest, frame(4), TracedKind::Method), deepest);
        assert_eq!(tree.nodes().len(), 5);
    }

    #[test]
    fn many_nodes_are_all_found_again() {
        let mut tree = TracedTree::default();
        let grow = |tree: &mut TracedTree| {
            let children = (0..60_000).map(|word| {
                let parent = tree.child(ROOT, frame(word % 7 + 1), TracedKind::Method);
                tree.child(parent, frame(word * 8), TracedKind::Block)
            });
            children.collect::<Vec<_>>()
        };
        let first = grow(&mut tree);
        assert_eq!(first, grow(&mut tree));
    }
}

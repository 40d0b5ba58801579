//! Folding of call trees that have grown too large: the lightest stacks keep their leaf and lose
//! callers. Called by the engine's worker, for watched sessions, and where profiles are merged. Any
//! thread, no I/O.
//!
//! A folded stack keeps its heaviest callers, from the root on, and its leaf, with a frame
//! `[folded]` in between. Its rows keep their thread, labels and state. So the self time of each
//! method and line stays as it was, and so does the total of each node that is still there.

use crate::frames::frame_kind::FOLDED_FRAME;
use crate::{CallTree, FrameId, Frames, Node, NodeId, Strings};

mod limits;
mod plan;
mod profile;
mod settle;

pub use limits::{FoldLimits, FoldRow, MAX_NODES, MERGED};
use plan::Plan;
pub use profile::FoldedSum;
pub(crate) use settle::settle;

/// Where a node of the tree before is in the folded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Here: as it was, or as a leaf under `[folded]`. All nodes with rows are.
    At(NodeId),
    /// Nowhere. This is the last of its callers that is still there.
    Below(NodeId),
}

/// A folded tree.
#[derive(Debug)]
pub struct FoldedTree {
    /// The tree.
    pub tree: CallTree,
    /// The place of each node of the tree before, the root's first.
    pub places: Vec<Place>,
}

impl FoldedTree {
    /// The node with the rows of `node`.
    pub fn of(&self, node: NodeId) -> NodeId {
        match self.places.get(node.0 as usize) {
            Some(Place::At(place) | Place::Below(place)) => *place,
            None => NodeId::ROOT,
        }
    }
}

/// The frame `[folded]`, which is added if it is new.
pub fn folded_frame(strings: &mut Strings, frames: &mut Frames) -> FrameId {
    let (name, path) = FOLDED_FRAME;
    frames.intern_named(strings, name, path, 0)
}

impl CallTree {
    /// Returns the tree with the lightest of its stacks folded so far that `limits` are kept, where
    /// the leaves allow it. `folded` is the frame `[folded]`; `rows` are all rows, each key once.
    pub fn fold(&self, folded: FrameId, rows: &[FoldRow], limits: FoldLimits) -> FoldedTree {
        let plan = Plan::new(self, folded, rows, limits);
        let mut tree = CallTree::with_capacity(plan.nodes());
        let mut places = vec![Place::At(NodeId::ROOT)];
        for (id, node) in self.iter() {
            let home = plan.home(id);
            let is_kept = home == id;
            let above = if is_kept { node.parent } else { home };
            let (Place::At(parent) | Place::Below(parent)) = places[above.0 as usize];
            places.push(if is_kept {
                Place::At(tree.intern(Node { parent, ..*node }))
            } else if plan.has_rows(id) {
                Place::At(tree.folded_leaf(parent, folded, node))
            } else {
                Place::Below(parent)
            });
        }
        FoldedTree { tree, places }
    }

    /// The node for the frame and line of `leaf`, whose callers below `home` are folded.
    pub fn folded_leaf(&mut self, home: NodeId, folded: FrameId, leaf: &Node) -> NodeId {
        let parent = self.intern(Node {
            parent: home,
            frame: folded,
            line: 0,
        });
        self.intern(Node { parent, ..*leaf })
    }

    /// Whether each node is a leaf under `[folded]`, the root's first.
    pub fn folded_leaves(&self, folded: FrameId) -> Vec<bool> {
        let is_folded = |id| self.get(id).is_some_and(|parent| parent.frame == folded);
        let nodes = self.iter().map(|(_, node)| is_folded(node.parent));
        std::iter::once(false).chain(nodes).collect()
    }
}

#[cfg(test)]
mod tests;

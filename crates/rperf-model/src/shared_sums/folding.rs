//! Folding of the stacks of shared sums that are full.

use super::{SharedSums, next_serial};
use crate::fold::{FoldRow, Place};
use crate::{CallTree, FrameId, Node, NodeId};

/// Stacks were folded: the numbers of all nodes have changed.
#[derive(Debug)]
pub struct Moved {
    places: Vec<Place>,
    before: CallTree,
}

impl Moved {
    /// Where a node is now, if it is there.
    pub fn place(&self, node: NodeId) -> Place {
        let place = self.places.get(node.0 as usize).copied();
        place.unwrap_or(Place::At(NodeId::ROOT))
    }

    /// A node as it was.
    pub fn before(&self, node: NodeId) -> Option<&Node> {
        self.before.get(node)
    }
}

impl SharedSums {
    /// Folds the lightest stacks, if there are many nodes or rows.
    pub fn fold_stacks_if_full(&mut self) -> Option<Moved> {
        let keys = &mut self.keys;
        if !self.plan.is_full(keys.tree.len(), self.rows.len()) {
            return None;
        }
        let facts = &self.facts;
        let rows = self.rows.iter();
        let rows = rows.map(|row| (row.key, facts.time_of(row.values)));
        let rows: Vec<FoldRow> = rows.collect();
        let frame = keys.folded_frame();
        let folded = keys.tree.fold(frame, &rows, self.plan.left());
        drop(rows);
        self.rows.change_keys(|key| key.node = folded.of(key.node));
        keys.truncated = keys.truncated.map(|node| folded.of(node));
        let before = std::mem::replace(&mut keys.tree, folded.tree);
        self.serial = next_serial();
        self.plan
            .has_folded_stacks(keys.tree.len(), self.rows.len());
        let places = folded.places;
        Some(Moved { places, before })
    }

    /// The frame `[folded]`.
    pub fn folded_frame(&mut self) -> FrameId {
        self.keys.folded_frame()
    }

    /// The last caller that a stack has whose `node` is a leaf under `[folded]`; else the node.
    pub fn home(&self, node: NodeId) -> NodeId {
        self.keys.home(node)
    }

    /// The node for a leaf whose callers below `home` are folded, or found no room.
    pub fn folded_leaf(&mut self, home: NodeId, frame: FrameId, line: u32) -> NodeId {
        // Half of the room that is left is for leaves whose stacks have no callers at all.
        let (keys, cap) = (&mut self.keys, self.plan.node_cap());
        let half = cap - cap / 16;
        let leaf = keys.leaf_within(half, home, frame, line);
        leaf.or_else(|| keys.leaf_within(cap, NodeId::ROOT, frame, line))
            .unwrap_or_else(|| keys.truncate())
    }
}

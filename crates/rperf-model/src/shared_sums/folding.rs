//! Folding of the stacks of shared sums that are full.

use super::{SharedSums, eighths, next_serial};
use crate::fold::{FoldLimits, FoldRow, Place, folded_frame};
use crate::{CallTree, FrameId, Node, NodeId};

/// Eighths of the room that are left afterwards. Readers begin from zero each time.
const LEFT_EIGHTHS: usize = 4;

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
        let at = self.fold_stacks_at;
        if self.tree.len() < at.nodes && self.rows.len() < at.rows {
            return None;
        }
        let facts = &self.facts;
        let rows = self.rows.iter();
        let rows = rows.map(|row| (row.key, facts.time_of(row.values)));
        let rows: Vec<FoldRow> = rows.collect();
        let frame = self.folded_frame();
        let limits = eighths(self.node_cap, LEFT_EIGHTHS);
        let folded = self.tree.fold(frame, &rows, limits);
        drop(rows);
        self.rows.change_keys(|key| key.node = folded.of(key.node));
        self.truncated = self.truncated.map(|node| folded.of(node));
        let before = std::mem::replace(&mut self.tree, folded.tree);
        self.serial = next_serial();
        // Where leaves alone fill the table, the next time comes when there are more by a quarter.
        let next = |size: usize, most: usize| (size + size / 4).max(most);
        self.fold_stacks_at = FoldLimits {
            nodes: next(self.tree.len(), at.nodes),
            rows: next(self.rows.len(), at.rows),
        };
        let places = folded.places;
        Some(Moved { places, before })
    }

    /// The frame `[folded]`.
    pub fn folded_frame(&mut self) -> FrameId {
        *self
            .folded
            .get_or_insert_with(|| folded_frame(&mut self.strings, &mut self.frames))
    }

    /// The last caller that a stack has whose `node` is a leaf under `[folded]`; else the node.
    pub fn home(&self, node: NodeId) -> NodeId {
        let above = self.tree.get(node).and_then(|it| self.tree.get(it.parent));
        match above.filter(|above| Some(above.frame) == self.folded) {
            Some(folded) => folded.parent,
            None => node,
        }
    }

    /// The node for a leaf whose callers below `home` are folded, or found no room.
    pub fn folded_leaf(&mut self, home: NodeId, frame: FrameId, line: u32) -> NodeId {
        // Half of the room that is left is for leaves whose stacks have no callers at all.
        let cap = self.node_cap;
        let half = cap - cap / 16;
        let leaf = self.leaf_within(half, home, frame, line);
        leaf.or_else(|| self.leaf_within(cap, NodeId::ROOT, frame, line))
            .unwrap_or_else(|| self.truncate())
    }

    fn leaf_within(
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

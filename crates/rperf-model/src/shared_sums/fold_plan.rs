//! How much room shared sums have, and what of them is folded when.

use super::rows::ROW_CAP;
use crate::fold::FoldLimits;

/// Eighths of the room that are taken when stacks are folded: the last one is left for leaves of
/// stacks that find no room until then.
const FULL_EIGHTHS: usize = 7;

/// Eighths of the room that are left afterwards. Readers begin from zero each time.
const LEFT_EIGHTHS: usize = 4;

/// The sizes at which rows of ended threads, and stacks, are folded next. They never are below those
/// of an empty table.
#[derive(Debug)]
pub(super) struct FoldPlan {
    /// With fewer rows, those of ended threads are never folded.
    least_rows: usize,
    /// With so many rows, those of ended threads are folded next.
    rows_at: usize,
    /// Nodes at most.
    node_cap: usize,
    /// With so many nodes or rows, stacks are folded next.
    stacks_at: FoldLimits,
}

impl FoldPlan {
    /// The plan of an empty table.
    pub(super) fn new(least_rows: usize, node_cap: usize) -> Self {
        Self {
            least_rows,
            rows_at: least_rows,
            node_cap,
            stacks_at: eighths(node_cap, FULL_EIGHTHS),
        }
    }

    /// The plan of the table once it is emptied.
    pub(super) fn anew(&self) -> Self {
        Self::new(self.least_rows, self.node_cap)
    }

    /// Nodes at most.
    pub(super) fn node_cap(&self) -> usize {
        self.node_cap
    }

    /// Nodes that find room before those which are kept for leaves.
    pub(super) fn common_nodes(&self) -> usize {
        eighths(self.node_cap, FULL_EIGHTHS).nodes
    }

    /// What is left of stacks that are folded.
    pub(super) fn left(&self) -> FoldLimits {
        eighths(self.node_cap, LEFT_EIGHTHS)
    }

    /// Whether so many rows are many.
    pub(super) fn has_many(&self, rows: usize) -> bool {
        rows >= self.rows_at
    }

    /// So many rows are left, as those of ended threads have been folded. Each fold visits all rows:
    /// the next one comes when there are twice as many.
    pub(super) fn has_folded_rows(&mut self, left: usize) {
        self.rows_at = (2 * left).clamp(self.least_rows, ROW_CAP);
    }

    /// Whether stacks are to be folded.
    pub(super) fn is_full(&self, nodes: usize, rows: usize) -> bool {
        nodes >= self.stacks_at.nodes || rows >= self.stacks_at.rows
    }

    /// So much is left, as stacks have been folded. Where leaves alone fill the table, the next time
    /// comes when there are more by a quarter.
    pub(super) fn has_folded_stacks(&mut self, nodes: usize, rows: usize) {
        let next = |size: usize, most: usize| (size + size / 4).max(most);
        self.stacks_at = FoldLimits {
            nodes: next(nodes, self.stacks_at.nodes),
            rows: next(rows, self.stacks_at.rows),
        };
    }
}

/// So many eighths of the room.
fn eighths(node_cap: usize, number: usize) -> FoldLimits {
    FoldLimits {
        nodes: node_cap / 8 * number,
        rows: ROW_CAP / 8 * number,
    }
}

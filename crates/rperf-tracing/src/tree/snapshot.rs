//! The call tree of a traced session up to a moment. Taken under the GVL.

use crate::tree::{TracedNode, TracedTree};

/// The tree as it was at a moment.
#[derive(Debug)]
pub(crate) struct TreeSnapshot {
    /// All nodes, parents first.
    pub(crate) nodes: Vec<TracedNode>,
    /// The node of what found no room, if there was such.
    pub(crate) truncated: Option<u32>,
    /// What is deeper than so many frames has no time of its own.
    pub(crate) deepest: u32,
    /// By row: such a frame has called something that isn't below it.
    pub(crate) leads_elsewhere: Vec<bool>,
}

impl TracedTree {
    /// The tree up to now.
    pub(crate) fn snapshot(&self) -> TreeSnapshot {
        self.snapshot_of(self.nodes.clone())
    }

    /// The tree, which has no nodes any longer.
    pub(crate) fn take_snapshot(&mut self) -> TreeSnapshot {
        let nodes = std::mem::take(&mut self.nodes);
        self.snapshot_of(nodes)
    }

    fn snapshot_of(&self, nodes: Vec<TracedNode>) -> TreeSnapshot {
        TreeSnapshot {
            nodes,
            truncated: self.truncated,
            deepest: self.deepest,
            leads_elsewhere: self.leads_elsewhere.clone(),
        }
    }
}

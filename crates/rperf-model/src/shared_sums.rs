//! What a running session has so far, for those who watch it: the sums of all rows, and which of
//! them have changed since a generation. Filled by the engine's worker, read by the port's thread;
//! both lock it for a moment. No I/O.
//!
//! Tables only grow, and sums are absolute: to lose a reply, or to get one twice, does no harm, and
//! any number of readers share one table. What can't grow (threads whose rows are added up, stacks
//! that are folded, a session that begins anew) gives the table another serial, and readers begin
//! from zero.

mod changes;
mod fold_plan;
mod folding;
mod keys;
mod rows;

pub use changes::{Changes, Cursor, PAGE_ROWS, PAGE_TEXT};
pub use folding::Moved;
pub use rows::{SumsRow, SumsValues};

use crate::{FrameId, LabelSetId, Mode, Node, NodeId, WeightKey};
use fold_plan::FoldPlan;
use keys::KeyTables;
use rows::Rows;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nodes that a table holds at most.
pub const NODE_CAP: usize = 1 << 20;

/// From so many rows on, those of ended threads are added up under thread 0.
const FOLD_ROWS: usize = 1 << 16;

/// Facts about the session, as of the last time that the table was brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumsFacts {
    /// What the session measures.
    pub mode: Mode,
    /// Samples per second.
    pub frequency: u32,
    /// Whether the session measures who has the GVL while others wait for it.
    pub blames: bool,
    /// When the session began, on the monotonic clock.
    pub start_ns: u64,
    /// Up to when the sums count, on the same clock.
    pub as_of_ns: u64,
    /// Time that sampling has taken.
    pub sampling_ns: u64,
    /// Time of samples that found no room.
    pub dropped_ns: u64,
}

impl Default for SumsFacts {
    /// Nothing, as of a session that isn't known yet. Clients begin those in wall mode.
    fn default() -> Self {
        Self {
            mode: Mode::Wall,
            frequency: 0,
            blames: false,
            start_ns: 0,
            as_of_ns: 0,
            sampling_ns: 0,
            dropped_ns: 0,
        }
    }
}

impl SumsFacts {
    /// The time that the session measures.
    pub fn time_of(&self, values: SumsValues) -> u64 {
        match self.mode {
            Mode::Cpu => values.cpu_ns,
            Mode::Wall => values.wall_ns,
        }
    }
}

/// The table.
#[derive(Debug)]
pub struct SharedSums {
    serial: u64,
    /// Facts about the session.
    pub facts: SumsFacts,
    keys: KeyTables,
    rows: Rows,
    /// Threads that have ended and may have rows of their own.
    ended: Vec<u32>,
    /// What found no room.
    lost: SumsValues,
    plan: FoldPlan,
}

impl Default for SharedSums {
    fn default() -> Self {
        Self::new(NODE_CAP)
    }
}

impl SharedSums {
    /// An empty one of `nodes` at most, and no more than [`NODE_CAP`].
    pub fn new(nodes: usize) -> Self {
        Self::of(FoldPlan::new(FOLD_ROWS, nodes.min(NODE_CAP)))
    }

    fn of(plan: FoldPlan) -> Self {
        Self {
            serial: next_serial(),
            facts: SumsFacts::default(),
            keys: KeyTables::default(),
            rows: Rows::default(),
            ended: Vec::new(),
            lost: SumsValues::default(),
            plan,
        }
    }

    /// The number of a frame.
    pub fn frame(&mut self, name: &str, path: &str, first_line: u32) -> FrameId {
        self.keys.frame(name, path, first_line)
    }

    /// The number of a node; `None` if it is new and there is no room for it. Some room is left for
    /// leaves of stacks that find none.
    pub fn node(&mut self, node: Node) -> Option<NodeId> {
        self.keys.node_within(self.plan.common_nodes(), node)
    }

    /// The node that stands for stacks without any room.
    pub fn truncate(&mut self) -> NodeId {
        self.keys.truncate()
    }

    /// The number of a label set.
    pub fn label_set<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> LabelSetId {
        self.keys.label_set(pairs)
    }

    /// Adds `values` to the row of `key`. Returns whether there was room; else they are among the time
    /// that is dropped.
    pub fn add(&mut self, key: WeightKey, values: SumsValues) -> bool {
        let has_room = self.rows.add(key, values);
        if !has_room {
            self.lost.add(values);
        }
        has_room
    }

    /// Facts about the session, with what found no room here.
    fn facts(&self) -> SumsFacts {
        let lost_ns = self.facts.time_of(self.lost);
        SumsFacts {
            dropped_ns: self.facts.dropped_ns.saturating_add(lost_ns),
            ..self.facts.clone()
        }
    }

    /// A thread has ended.
    pub fn thread_ended(&mut self, thread: u32) {
        self.ended.push(thread);
    }

    /// Adds the rows of ended threads up, once there are many. To be called when all that is known
    /// of them has been added.
    pub fn fold_if_many(&mut self) {
        let is_many = self.plan.has_many(self.rows.len() + self.ended.len());
        if is_many && !self.ended.is_empty() {
            self.rows.fold(self.ended.drain(..).collect());
            self.serial = next_serial();
            self.plan.has_folded_rows(self.rows.len());
        }
    }

    /// Nothing is left of what was collected so far.
    pub fn clear(&mut self) {
        *self = Self {
            facts: std::mem::take(&mut self.facts),
            ..Self::of(self.plan.anew())
        };
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        self.keys.tree.len()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }
}

/// No other table of this process, and no earlier state of one that readers can't follow, has it.
fn next_serial() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

#[cfg(test)]
mod tests;

//! How far a program is read, and whether what comes next can follow.

use super::row::RowKey;
use rperf_model::shared_sums::{Changes, NODE_CAP, SumsRow, SumsValues};
use rperf_model::{Frame, FrameId, LabelSetId, StringId, WeightKey};
use rperf_protocol::delta::BadDelta;
use rustc_hash::{FxHashMap, FxHashSet};

/// Stacks, frames, label sets and threads at most: as many as a port has. Time that finds no room
/// of its own counts for the last caller that is known, under thread 0 and the label [`MORE`](super::MORE).
pub const CAP: usize = NODE_CAP + 1;

/// Rows at most, but for those of time without room.
pub const ROW_CAP: usize = CAP;

/// Strings at most.
pub const STRING_CAP: usize = 4 * NODE_CAP;

/// Their bytes.
pub const TEXT_CAP: usize = 256 << 20;

/// How far a program is read: the sums' numbers of all that it has sent. `None` is what found no
/// room.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Its texts.
    pub strings: Vec<Option<StringId>>,
    /// Bytes of text.
    pub text: usize,
    /// Its frames.
    pub frames: Vec<Option<FrameId>>,
    /// All nodes but the root, whose numbers begin with 1.
    pub nodes: Vec<Place>,
    /// Its label sets.
    pub label_sets: Vec<Option<u32>>,
    /// What rows have had that found no room of their own.
    pub crowded: FxHashMap<WeightKey, SumsValues>,
    /// Threads that were seen in the helper's stacks.
    pub helpers: FxHashSet<u32>,
    /// All rows, if they come anew.
    pub anew: Option<Anew>,
    /// What may be the time of idle threads, or may tell of it, has come since that was told.
    pub has_new_waits: bool,
    /// Further pages follow.
    pub is_pulling: bool,
}

/// A node of a program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// Its stack, or that of the last caller with room.
    pub stack: u32,
    /// Whether the node has no stack of its own, as there was no room for it.
    pub has_no_room: bool,
    /// Whether the stack is one of the helper, the thread that answers for the VM.
    pub is_helpers: bool,
}

/// Rows that come anew.
#[derive(Debug, Clone, Default)]
pub struct Anew {
    /// When the session began that was there before.
    pub start_ns: u64,
    /// The sums that have come.
    pub rows: FxHashMap<RowKey, SumsValues>,
}

impl Reading {
    /// A node; the root for 0.
    pub fn place(&self, node: u32) -> Place {
        let place = (node as usize).checked_sub(1);
        place.map_or(Place::default(), |it| self.nodes[it])
    }

    /// Whether a row is of the thread that answers for the VM.
    pub fn is_helpers(&self, key: &WeightKey) -> bool {
        self.place(key.node.0).is_helpers || self.helpers.contains(&key.thread)
    }

    /// Whether all that a page refers to is there, and it isn't too much.
    pub fn check(&self, changes: &Changes) -> Result<(), BadDelta> {
        let strings = self.strings.len() + changes.strings.len();
        let frames = self.frames.len() + changes.frames.len();
        let nodes = self.nodes.len() + changes.nodes.len();
        let sets = self.label_sets.len() + changes.label_sets.len();
        let text = changes.strings.iter().map(String::len).sum::<usize>();
        let is_small = strings <= STRING_CAP
            && [frames, nodes, sets].into_iter().all(|it| it <= CAP)
            && self.text + text <= TEXT_CAP;
        let is_text = |id: StringId| (id.0 as usize) < strings;
        let has_texts = |it: &Frame| is_text(it.name) && is_text(it.path);
        let mut labels = changes.label_sets.iter().flatten();
        // Parents come first: so no stack has a circle.
        let mut numbered = changes.nodes.iter().zip(self.nodes.len()..);
        let is_known = |row: &SumsRow| {
            let labels = row.key.labels;
            row.key.node.0 as usize <= nodes
                && (labels == LabelSetId::default() || (labels.0 as usize) < sets)
        };
        let is_good = is_small
            && changes.frames.iter().all(has_texts)
            && numbered.all(|(node, last)| {
                node.parent.0 as usize <= last && (node.frame.0 as usize) < frames
            })
            && labels.all(|&(key, value)| is_text(key) && is_text(value))
            && changes.rows.iter().all(is_known);
        if is_good { Ok(()) } else { Err(BadDelta) }
    }
}

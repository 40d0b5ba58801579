//! How large trees and profiles may be, and what weighs in them.

use crate::WeightKey;
use std::ops::RangeInclusive;

/// How many nodes a profile may be allowed to have. With more, files become too large to be read
/// again; with fewer, little but leaves would be left.
pub const MAX_NODES: RangeInclusive<u32> = 10_000..=4_000_000;

/// What several profiles have in one, if nobody says anything: so much can be written and read
/// again.
pub const MERGED: FoldLimits = FoldLimits {
    nodes: *MAX_NODES.end() as usize,
    rows: 2_000_000,
};

/// How much a folded tree has at most. All leaves stay, so it has more if there are more of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldLimits {
    /// Nodes.
    pub nodes: usize,
    /// Rows. If there are more leaves with different threads, labels and states, rows have no
    /// limit.
    pub rows: usize,
}

/// A row of a tree that is to be folded: its key, and how much weighs on it.
pub type FoldRow = (WeightKey, u64);

//! Which nodes of a tree stay when it is folded: the heaviest ones, as many as there is room for
//! beside the leaves of the others.

use super::limits::{FoldLimits, FoldRow};
use crate::{CallTree, FrameId, NodeId, WeightKey};
use rustc_hash::FxHashSet;
use std::cmp::Reverse;

/// Attempts to find the number of nodes that stay, at most: each visits all nodes.
const ATTEMPTS: usize = 10;

/// So many attempts go by how many leaves there were in the one before; there are a few more where
/// fewer nodes stay, for which one part in so many is spared.
const LEAVES_KNOWN: usize = 4;
const SPARE_PART: usize = 20;

/// A plan that fills so many eighths of the room, or more, is good enough.
const FILLED_EIGHTHS: usize = 7;

/// A node by its weight: heavier ones come first, and of equal ones those above.
type Rank = (Reverse<u64>, NodeId);

/// What stays, and where the rest goes.
pub(super) struct Plan<'a> {
    nodes: Nodes<'a>,
    size: Size,
    /// For each node, the root included: itself if it stays, or else the last of its callers that
    /// stays.
    homes: Vec<NodeId>,
}

/// The nodes of the tree before.
struct Nodes<'a> {
    tree: &'a CallTree,
    rows: &'a [FoldRow],
    facts: Vec<Facts>,
    /// Nodes with rows of their own.
    with_rows: Vec<NodeId>,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    /// The weight of its rows and of those below.
    total: u64,
    /// Whether the node has rows.
    has_rows: bool,
    /// Nodes below it have rows.
    has_rows_below: bool,
    /// Whether the node is `[folded]`, or a leaf under that.
    is_folded: bool,
}

/// How large the folded tree would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Size {
    nodes: usize,
    rows: usize,
}

impl Size {
    fn is_within(self, limits: FoldLimits) -> bool {
        self.nodes <= limits.nodes && self.rows <= limits.rows
    }

    fn fills(self, limits: FoldLimits) -> bool {
        let fills = |size: usize, most: usize| size >= most / 8 * FILLED_EIGHTHS;
        fills(self.nodes, limits.nodes) || fills(self.rows, limits.rows)
    }
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        tree: &'a CallTree,
        folded: FrameId,
        rows: &'a [FoldRow],
        mut limits: FoldLimits,
    ) -> Self {
        let nodes = Nodes::new(tree, folded, rows);
        let mut ranks = nodes.ranks();
        let mut plan = Self {
            size: Size::default(),
            homes: Vec::new(),
            nodes,
        };
        // The first `least` ranks may stay, as far as is known, and not the first `most`.
        let (mut least, mut most) = (0, ranks.len().min(limits.nodes) + 1);
        let mut guess = match ranks.len() <= limits.nodes {
            true => ranks.len(),
            false => limits.nodes - limits.nodes / SPARE_PART,
        };
        for attempt in 0..ATTEMPTS {
            plan.keep(&mut ranks, guess, limits);
            let is_within = plan.size.is_within(limits);
            if is_within && (guess + 1 == most || plan.size.fills(limits)) {
                return plan;
            }
            if is_within {
                least = guess;
            } else {
                most = guess;
            }
            if least + 1 >= most {
                break;
            }
            let leaves = plan.size.nodes - guess.min(plan.size.nodes);
            let beside_leaves = limits
                .nodes
                .saturating_sub(leaves + limits.nodes / SPARE_PART);
            guess = match attempt < LEAVES_KNOWN && (least + 1..most).contains(&beside_leaves) {
                true => beside_leaves,
                // By their ratio: what fits may be a few nodes.
                false => (least.max(1) * most).isqrt().clamp(least + 1, most - 1),
            };
        }
        plan.keep(&mut ranks, least, limits);
        if least == 0 && plan.size.rows > limits.rows {
            limits.rows = usize::MAX;
            return Self::new(tree, folded, rows, limits);
        }
        plan
    }

    /// How many nodes there are going to be, or nearly so.
    pub(super) fn nodes(&self) -> usize {
        self.size.nodes
    }

    /// The node itself if it stays, or else the last of its callers that stays.
    pub(super) fn home(&self, node: NodeId) -> NodeId {
        self.homes[node.0 as usize]
    }

    /// Whether a node has rows of its own.
    pub(super) fn has_rows(&self, node: NodeId) -> bool {
        self.nodes.facts[node.0 as usize].has_rows
    }

    /// The `count` heaviest nodes stay.
    fn keep(&mut self, ranks: &mut [Rank], count: usize, limits: FoldLimits) {
        let place = count.checked_sub(1).filter(|place| *place < ranks.len());
        let last = place.map(|place| *ranks.select_nth_unstable(place).1);
        let mut homes = std::mem::take(&mut self.homes);
        self.nodes.find_homes(last, &mut homes);
        self.homes = homes;
        self.size = self.nodes.size(&self.homes, limits);
    }
}

impl<'a> Nodes<'a> {
    fn new(tree: &'a CallTree, folded: FrameId, rows: &'a [FoldRow]) -> Self {
        let mut facts = vec![Facts::default(); tree.len() + 1];
        let mut with_rows = Vec::new();
        for (key, weight) in rows {
            let Some(node) = facts.get_mut(key.node.0 as usize) else {
                continue;
            };
            // No row is without weight: it is a leaf at any rate.
            node.total = node.total.saturating_add((*weight).max(1));
            if !std::mem::replace(&mut node.has_rows, true) {
                with_rows.push(key.node);
            }
        }
        for (id, node) in tree.iter() {
            let (is_folded, parent) = (node.frame == folded, node.parent.0 as usize);
            facts[id.0 as usize].is_folded = is_folded || facts[parent].is_folded;
        }
        for (id, node) in tree.iter().rev() {
            let below = facts[id.0 as usize];
            let parent = &mut facts[node.parent.0 as usize];
            parent.total = parent.total.saturating_add(below.total);
            parent.has_rows_below |= below.has_rows || below.has_rows_below;
        }
        Self {
            tree,
            rows,
            facts,
            with_rows,
        }
    }

    /// The nodes that can stay: those that anything weighs on, and that aren't folded yet.
    fn ranks(&self) -> Vec<Rank> {
        let nodes = self.facts.iter().enumerate().skip(1);
        let can_stay = nodes.filter(|(_, node)| node.total > 0 && !node.is_folded);
        can_stay
            .map(|(row, node)| (Reverse(node.total), NodeId(row as u32)))
            .collect()
    }

    /// The homes of all nodes, if those up to rank `last` stay.
    fn find_homes(&self, last: Option<Rank>, homes: &mut Vec<NodeId>) {
        homes.clear();
        homes.push(NodeId::ROOT);
        for (id, node) in self.tree.iter() {
            let facts = self.facts[id.0 as usize];
            let home = homes[node.parent.0 as usize];
            let is_heavy = last.is_some_and(|last| (Reverse(facts.total), id) <= last);
            // To fold a leaf of a node that stays wouldn't save anything.
            let is_near = home == node.parent && facts.has_rows && !facts.has_rows_below;
            let stays = !facts.is_folded && facts.total > 0 && (is_heavy || is_near);
            homes.push(if stays { id } else { home });
        }
    }

    fn size(&self, homes: &[NodeId], limits: FoldLimits) -> Size {
        let home = |node: NodeId| homes[node.0 as usize];
        let kept = homes.iter().enumerate().skip(1);
        let kept = kept.filter(|(row, home)| home.0 as usize == *row).count();
        let mut leaves = FxHashSet::default();
        let mut pools = FxHashSet::default();
        for &node in &self.with_rows {
            if let (true, Some(leaf)) = (home(node) != node, self.tree.get(node)) {
                leaves.insert((home(node), leaf.frame, leaf.line));
                pools.insert(home(node));
            }
        }
        Size {
            nodes: kept + leaves.len() + pools.len(),
            rows: match self.rows.len() <= limits.rows {
                true => self.rows.len(),
                false => self.distinct_rows(homes),
            },
        }
    }

    fn distinct_rows(&self, homes: &[NodeId]) -> usize {
        let mut kept = 0;
        let mut folded = FxHashSet::default();
        for (key, _) in self.rows {
            let home = homes.get(key.node.0 as usize).copied();
            match (
                home.filter(|home| *home != key.node),
                self.tree.get(key.node),
            ) {
                (Some(home), Some(leaf)) => {
                    let key = WeightKey { node: home, ..*key };
                    folded.insert((key, leaf.frame, leaf.line));
                }
                _ => kept += 1,
            }
        }
        kept + folded.len()
    }
}

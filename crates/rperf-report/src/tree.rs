//! The call tree, top-down from the roots or bottom-up from the leaves, as far as its
//! branches are large enough to be shown. Used by `rperf report --tree` and by the
//! formats with trees; any thread.
//!
//! A branch is opened only if it is shown, so that the many small ones cost nothing,
//! and without recursion, so that stacks of any depth are fine.

use crate::stack::groups::{FrameKey, Function, GroupId, Groups};
use crate::stack::walk::Index;
use rperf_model::{Column, NodeId, Order, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where a tree begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the functions without callers; below each one are its callees.
    #[default]
    TopDown,
    /// From the functions with a value of their own; below each one are its callers.
    BottomUp,
}

/// How much of a tree is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// The least value of a branch, whatever its sign.
    pub least: u64,
    /// How many functions a branch may have below each other.
    pub depth: usize,
    /// How many branches there may be: the largest ones, and of equal ones those that are
    /// less deep.
    pub branches: usize,
}

impl TreeLimits {
    /// The whole tree.
    pub const NONE: Self = Self {
        least: 0,
        depth: usize::MAX,
        branches: usize::MAX,
    };
}

impl Default for TreeLimits {
    /// The whole tree with at most 10,000 branches, as many as anybody looks at: many deep stacks
    /// can have millions.
    fn default() -> Self {
        Self {
            branches: 10_000,
            ..Self::NONE
        }
    }
}

/// A call tree. Calls of the same function by the same callers are one branch, whatever
/// their lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// All weights.
    pub total: i64,
    /// The functions that the branches are of.
    pub functions: Vec<Function>,
    /// The branches, each one followed by those below it, the largest first.
    pub branches: Vec<Branch>,
    /// How many roots are not there because they are too small, or too many.
    pub left_out: usize,
}

/// A function with its callers, or with its callees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// A row of [`Tree::functions`].
    pub function: usize,
    /// How many branches it is below.
    pub depth: usize,
    /// Value of the stacks that end here: with it as leaf or, bottom-up, as root.
    pub self_value: i64,
    /// Value of the stacks that pass here.
    pub total_value: i64,
    /// How many branches right below it are not there because they are too small, too deep
    /// or too many.
    pub left_out: usize,
}

impl Tree {
    /// The tree of `profile` for the values in `column`.
    pub fn of(profile: &Profile, column: Column, direction: Direction, limits: TreeLimits) -> Self {
        let groups = Groups::new(profile, FrameKey::Function);
        let growth = Growth {
            profile,
            column,
            groups: &groups,
        };
        let (roots, total) = match direction {
            Direction::TopDown => {
                let calls = Calls::new(&growth);
                let whole = Sprout::of_nodes(vec![NodeId::ROOT]);
                let total = calls.totals[0];
                return growth.grow(total, calls.below(&whole), limits, |sprout| {
                    calls.below(sprout)
                });
            }
            Direction::BottomUp => growth.leaves(),
        };
        growth.grow(total, roots, limits, |sprout| growth.callers(sprout))
    }
}

/// A branch before it is known whether it will be shown.
struct Sprout {
    function: GroupId,
    self_value: i64,
    total_value: i64,
    /// Where it goes on, with the value of the stacks that pass there: top-down the
    /// nodes of the function, bottom-up those of its callers.
    nodes: Vec<(NodeId, i64)>,
}

impl Sprout {
    fn new(function: GroupId) -> Self {
        Self {
            function,
            self_value: 0,
            total_value: 0,
            nodes: Vec::new(),
        }
    }

    fn of_nodes(nodes: Vec<NodeId>) -> Self {
        Self {
            nodes: nodes.into_iter().map(|node| (node, 0)).collect(),
            ..Self::new(0)
        }
    }

    fn add(&mut self, self_value: i64, total_value: i64) {
        self.self_value = self.self_value.saturating_add(self_value);
        self.total_value = self.total_value.saturating_add(total_value);
    }
}

/// Sprouts by their functions.
#[derive(Default)]
struct Sprouts {
    sprouts: Vec<Sprout>,
    rows: FxHashMap<GroupId, usize>,
}

impl Sprouts {
    fn of(&mut self, function: GroupId) -> &mut Sprout {
        let row = *self.rows.entry(function).or_insert_with(|| {
            self.sprouts.push(Sprout::new(function));
            self.sprouts.len() - 1
        });
        &mut self.sprouts[row]
    }
}

/// The branches that there are so far, and the ones that may come next.
#[derive(Default)]
struct Grown {
    /// In the order in which they were added: callers, or bottom-up callees, first, and of
    /// branches side by side the largest first.
    branches: Vec<Branch>,
    /// For each branch the one that it is below.
    parents: Vec<Option<usize>>,
    waiting: BinaryHeap<Waiting>,
    /// How many have been waiting, those included that have been added.
    number: usize,
    /// Roots that are not there.
    left_out: usize,
}

/// The largest one is the next to be added; of equal ones the one that has waited longest.
struct Waiting {
    value: u64,
    number: Reverse<usize>,
    parent: Option<usize>,
    sprout: Sprout,
}

impl Waiting {
    fn rank(&self) -> (u64, Reverse<usize>) {
        (self.value, self.number)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Waiting {}

impl Grown {
    /// The branches, each one followed by those below it, and how many roots are left out.
    fn finish(mut self) -> (Vec<Branch>, usize) {
        for waiting in self.waiting {
            match waiting.parent {
                Some(parent) => self.branches[parent].left_out += 1,
                None => self.left_out += 1,
            }
        }
        let mut below = vec![Vec::new(); self.branches.len()];
        let mut next = Vec::new();
        for (index, parent) in self.parents.iter().enumerate().rev() {
            match parent {
                Some(parent) => below[*parent].push(index),
                None => next.push(index),
            }
        }
        let mut ordered = Vec::with_capacity(self.branches.len());
        while let Some(index) = next.pop() {
            ordered.push(self.branches[index]);
            next.append(&mut below[index]);
        }
        (ordered, self.left_out)
    }
}

struct Growth<'a> {
    profile: &'a Profile,
    column: Column,
    groups: &'a Groups<'a>,
}

impl Growth<'_> {
    fn grow(
        &self,
        total: i64,
        roots: Vec<Sprout>,
        limits: TreeLimits,
        below: impl Fn(&Sprout) -> Vec<Sprout>,
    ) -> Tree {
        let mut grown = Grown::default();
        grown.left_out = self.add(&mut grown, roots, None, limits);
        while grown.branches.len() < limits.branches
            && let Some(Waiting { sprout, parent, .. }) = grown.waiting.pop()
        {
            let depth = parent.map_or(0, |parent| grown.branches[parent].depth + 1);
            let index = grown.branches.len();
            grown.parents.push(parent);
            grown.branches.push(Branch {
                function: sprout.function,
                depth,
                self_value: sprout.self_value,
                total_value: sprout.total_value,
                left_out: 0,
            });
            let left_out = self.add(&mut grown, below(&sprout), Some(index), limits);
            grown.branches[index].left_out = left_out;
        }
        let (branches, left_out) = grown.finish();
        Tree {
            total,
            functions: (0..self.groups.len())
                .map(|group| self.groups.function(group))
                .collect(),
            branches,
            left_out,
        }
    }

    /// Lets those below `parent` wait that may be shown, and returns how many may not.
    fn add(
        &self,
        grown: &mut Grown,
        mut sprouts: Vec<Sprout>,
        parent: Option<usize>,
        limits: TreeLimits,
    ) -> usize {
        let depth = parent.map_or(0, |parent| grown.branches[parent].depth + 1);
        sprouts.retain(|sprout| sprout.total_value != 0 || sprout.self_value != 0);
        let all = sprouts.len();
        sprouts.retain(|sprout| {
            depth < limits.depth && sprout.total_value.unsigned_abs() >= limits.least
        });
        sprouts.order_by_key(|sprout| {
            let text = &self.groups.texts[sprout.function];
            (Reverse(sprout.total_value.unsigned_abs()), text)
        });
        let left_out = all - sprouts.len();
        for sprout in sprouts {
            grown.number += 1;
            grown.waiting.push(Waiting {
                value: sprout.total_value.unsigned_abs(),
                number: Reverse(grown.number),
                parent,
                sprout,
            });
        }
        left_out
    }

    /// The functions with a value of their own, and the sum of all.
    fn leaves(&self) -> (Vec<Sprout>, i64) {
        let tree = &self.profile.tree;
        let mut total: i64 = 0;
        let mut sprouts = Sprouts::default();
        for row in self.profile.weights.iter() {
            let value = row.value(self.column);
            total = total.saturating_add(value);
            let (function, caller) = match self.profile.display_leaf(row.key) {
                Some(leaf) => (self.groups.of(leaf), row.key.node),
                None => match tree.get(row.key.node) {
                    Some(node) => (self.groups.of_frame(node.frame), node.parent),
                    None => continue,
                },
            };
            let sprout = sprouts.of(function);
            sprout.add(0, value);
            sprout.nodes.push((caller, value));
        }
        for sprout in &mut sprouts.sprouts {
            self.settle(sprout);
        }
        (sprouts.sprouts, total)
    }

    /// The callers of a sprout of a bottom-up tree.
    fn callers(&self, sprout: &Sprout) -> Vec<Sprout> {
        let mut sprouts = Sprouts::default();
        for &(id, value) in &sprout.nodes {
            if let Some(node) = self.profile.tree.get(id) {
                let caller = sprouts.of(self.groups.of_frame(node.frame));
                caller.add(0, value);
                caller.nodes.push((node.parent, value));
            }
        }
        for sprout in &mut sprouts.sprouts {
            self.settle(sprout);
        }
        sprouts.sprouts
    }

    /// Merges nodes that have become the same, and takes out the stacks that end here.
    fn settle(&self, sprout: &mut Sprout) {
        let nodes = &mut sprout.nodes;
        nodes.sort_unstable_by_key(|(node, _)| *node);
        nodes.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        if let Some(&(NodeId::ROOT, value)) = nodes.first() {
            sprout.self_value = value;
            nodes.remove(0);
        }
    }
}

/// The facts about all nodes that a top-down tree needs.
struct Calls<'a> {
    growth: &'a Growth<'a>,
    index: Index,
    /// For each node what its rows and those of the nodes below it add up to.
    totals: Vec<i64>,
}

impl<'a> Calls<'a> {
    fn new(growth: &'a Growth<'a>) -> Self {
        let profile = growth.profile;
        let mut totals = vec![0_i64; profile.tree.len() + 1];
        for row in profile.weights.iter() {
            let total = &mut totals[row.key.node.0 as usize];
            *total = total.saturating_add(row.value(growth.column));
        }
        // Callers come first, so backwards each node is complete when it is met.
        for id in (1..totals.len()).rev() {
            if let Some(node) = profile.tree.get(NodeId(id as u32)) {
                let total = totals[id];
                let caller = &mut totals[node.parent.0 as usize];
                *caller = caller.saturating_add(total);
            }
        }
        Self {
            growth,
            index: Index::new(profile),
            totals,
        }
    }

    fn below(&self, sprout: &Sprout) -> Vec<Sprout> {
        let Growth {
            profile,
            column,
            groups,
        } = *self.growth;
        let mut sprouts = Sprouts::default();
        for &(id, _) in &sprout.nodes {
            for row in self.index.rows(id, profile) {
                if let Some(leaf) = profile.display_leaf(row.key) {
                    let value = row.value(column);
                    sprouts.of(groups.of(leaf)).add(value, value);
                }
            }
            for child in self.index.children(id) {
                let Some(node) = profile.tree.get(child) else {
                    continue;
                };
                let rows = self.index.rows(child, profile);
                let running = rows.filter(|row| profile.display_leaf(row.key).is_none());
                let own = running.map(|row| row.value(column));
                let own = own.fold(0, i64::saturating_add);
                let total = self.totals[child.0 as usize];
                let callee = sprouts.of(groups.of_frame(node.frame));
                callee.add(own, total);
                callee.nodes.push((child, total));
            }
        }
        sprouts.sprouts
    }
}

#[cfg(test)]
mod tests;

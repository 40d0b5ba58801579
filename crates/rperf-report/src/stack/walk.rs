//! The walk through all stacks of a profile: each node once, however many rows have it
//! in their stacks. Used by all questions that sum over stacks; any thread.
//!
//! It keeps its own stack, so that stacks of any depth are fine.

use rperf_model::{CallTree, Column, Node, NodeId, Profile, Weight};

/// Values that are summed at a time, one for each column asked for.
pub(crate) type Values<const N: usize> = [i64; N];

/// The receiver of the walk's events.
pub(crate) trait Visitor<const N: usize> {
    /// A node is entered; its callers have been, and have not been left.
    fn enter(&mut self, id: NodeId, node: Node);
    /// A row whose stack is the one of the node last entered and not left.
    fn row(&mut self, row: Weight<'_>, values: Values<N>);
    /// A node is left: all nodes that it calls have been. `total` is what the rows at
    /// the node and below it add up to.
    fn leave(&mut self, id: NodeId, node: Node, total: Values<N>);
}

/// No node, or no row.
const NONE: u32 = u32::MAX;

/// The nodes of a call tree by their callers, and the rows of weights by their nodes.
pub(crate) struct Index {
    nodes: Vec<Links>,
    next_row: Vec<u32>,
}

/// Where a node leads to. Whoever needs one of these needs the others too.
#[derive(Clone, Copy)]
struct Links {
    first_child: u32,
    next_sibling: u32,
    first_row: u32,
}

impl Index {
    pub(crate) fn new(profile: &Profile) -> Self {
        let nodes = profile.tree.len() + 1;
        let no_links = Links {
            first_child: NONE,
            next_sibling: NONE,
            first_row: NONE,
        };
        let mut index = Self {
            nodes: vec![no_links; nodes],
            next_row: vec![NONE; profile.weights.len()],
        };
        // Backwards, as each one is put in front of those that are there.
        for id in (1..nodes as u32).rev() {
            if let Some(node) = profile.tree.get(NodeId(id)) {
                let first = &mut index.nodes[node.parent.0 as usize].first_child;
                index.nodes[id as usize].next_sibling = std::mem::replace(first, id);
            }
        }
        for row in (0..profile.weights.len()).rev() {
            if let Some(weight) = profile.weights.get(row) {
                let first = &mut index.nodes[weight.key.node.0 as usize].first_row;
                index.next_row[row] = std::mem::replace(first, row as u32);
            }
        }
        index
    }

    /// The nodes that `id` calls.
    pub(crate) fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let next = |id: u32| self.nodes[id as usize].next_sibling;
        links(self.nodes[id.0 as usize].first_child, next).map(NodeId)
    }

    /// The rows with the stack of `id`.
    pub(crate) fn rows<'a>(
        &'a self,
        id: NodeId,
        profile: &'a Profile,
    ) -> impl Iterator<Item = Weight<'a>> {
        let next = |row: u32| self.next_row[row as usize];
        links(self.nodes[id.0 as usize].first_row, next)
            .filter_map(|row| profile.weights.get(row as usize))
    }
}

fn links(first: u32, next: impl Fn(u32) -> u32) -> impl Iterator<Item = u32> {
    let known = |link: u32| (link != NONE).then_some(link);
    std::iter::successors(known(first), move |link| known(next(*link)))
}

/// Walks through all stacks of `profile`, summing the values in `columns`.
pub(crate) fn walk<const N: usize>(
    profile: &Profile,
    columns: [Column; N],
    visitor: &mut impl Visitor<N>,
) {
    let values = |row: Weight<'_>| columns.map(|column| row.value(column));
    walk_summing(profile, values, visitor);
}

/// Walks through all stacks of `profile`, summing what `values` makes of each row.
pub(crate) fn walk_summing<const N: usize>(
    profile: &Profile,
    values: impl Fn(Weight<'_>) -> Values<N>,
    visitor: &mut impl Visitor<N>,
) {
    let index = Index::new(profile);
    for row in index.rows(NodeId::ROOT, profile) {
        visitor.row(row, values(row));
    }
    let mut next = index.nodes[0].first_child;
    let mut entered: Vec<(NodeId, Values<N>)> = Vec::new();
    loop {
        if let Some(&node) = profile.tree.get(NodeId(next)).filter(|_| next != NONE) {
            let id = NodeId(next);
            visitor.enter(id, node);
            let mut total = [0; N];
            for row in index.rows(id, profile) {
                let values = values(row);
                visitor.row(row, values);
                add(&mut total, values);
            }
            entered.push((id, total));
            next = index.nodes[next as usize].first_child;
            continue;
        }
        let Some((id, total)) = entered.pop() else {
            return;
        };
        leave(&profile.tree, id, total, visitor);
        if let Some((_, caller)) = entered.last_mut() {
            add(caller, total);
        }
        next = index.nodes[id.0 as usize].next_sibling;
    }
}

fn leave<const N: usize>(
    tree: &CallTree,
    id: NodeId,
    total: Values<N>,
    visitor: &mut impl Visitor<N>,
) {
    if let Some(&node) = tree.get(id) {
        visitor.leave(id, node, total);
    }
}

pub(crate) fn add<const N: usize>(sums: &mut Values<N>, values: Values<N>) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(value);
    }
}

/// Sums that take each stack once: what is in a stack several times, as with recursion,
/// took the time only once.
pub(crate) struct OnceSums<const N: usize> {
    pub(crate) totals: Vec<Values<N>>,
    /// How often each thing is among the nodes that have been entered and not left.
    depths: Vec<u32>,
}

impl<const N: usize> OnceSums<N> {
    pub(crate) fn new(len: usize) -> Self {
        Self {
            totals: vec![[0; N]; len],
            depths: vec![0; len],
        }
    }

    /// Adds a thing to those that are summed.
    pub(crate) fn push(&mut self) -> usize {
        self.totals.push([0; N]);
        self.depths.push(0);
        self.totals.len() - 1
    }

    pub(crate) fn enter(&mut self, thing: usize) {
        self.depths[thing] += 1;
    }

    pub(crate) fn leave(&mut self, thing: usize, total: Values<N>) {
        self.depths[thing] -= 1;
        self.add_leaf(thing, total);
    }

    /// Adds what a row has whose leaf is the thing, unless a caller is that too.
    pub(crate) fn add_leaf(&mut self, thing: usize, values: Values<N>) {
        if self.depths[thing] == 0 {
            add(&mut self.totals[thing], values);
        }
    }
}

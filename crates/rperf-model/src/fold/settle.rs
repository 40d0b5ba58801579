//! Differences of two profiles of one session, of which each has folded other stacks: what a row
//! lacks is in another one with the same leaf.

use crate::{CallTree, FrameId, LabelSetId, Node, NodeId, State, WeightKey, WeightTable};
use rustc_hash::FxHashMap;

/// A leaf with its line, and whose it is: rows of one kind differ in callers alone.
type Kind = (FrameId, u32, u32, LabelSetId, State);

/// Rows below zero, from which more was taken than they have, take what they lack from rows of their
/// kind: where one of the two stacks is folded and has the callers of the other if there are
/// such, else from any.
pub(crate) fn settle(tree: &CallTree, folded: FrameId, weights: &mut WeightTable) {
    for key in negative(weights) {
        for node in folded_above(tree, folded, key.node) {
            lend(weights, WeightKey { node, ..key }, key);
        }
    }
    let lacking = negative(weights);
    if lacking.is_empty() {
        return;
    }
    let kinds = lacking.iter().filter_map(|key| kind(tree, key));
    let mut kinds: FxHashMap<Kind, Lenders> = kinds.map(|it| (it, Lenders::default())).collect();
    for row in weights.rows().iter() {
        if let Some(lenders) = kind(tree, &row.key).and_then(|it| kinds.get_mut(&it)) {
            lenders.rows.push(row.key);
        }
    }
    for key in kinds.values().flat_map(|lenders| &lenders.rows) {
        for node in folded_above(tree, folded, key.node) {
            lend(weights, *key, WeightKey { node, ..*key });
        }
    }
    for key in lacking {
        if let Some(lenders) = kind(tree, &key).and_then(|it| kinds.get_mut(&it)) {
            lenders.lend_to(key, weights);
        }
    }
}

/// Rows of one kind.
#[derive(Debug, Default)]
struct Lenders {
    rows: Vec<WeightKey>,
    /// How many of the first ones have nothing left.
    spent: usize,
}

impl Lenders {
    fn lend_to(&mut self, key: WeightKey, weights: &mut WeightTable) {
        for place in self.spent..self.rows.len() {
            if !has(weights, &key, |value| value < 0) {
                return;
            }
            let row = self.rows[place];
            lend(weights, row, key);
            if place == self.spent && !has(weights, &row, |value| value > 0) {
                self.spent += 1;
            }
        }
    }
}

fn kind(tree: &CallTree, key: &WeightKey) -> Option<Kind> {
    let leaf = tree.get(key.node)?;
    Some((leaf.frame, leaf.line, key.thread, key.labels, key.state))
}

/// The rows with a value below zero.
fn negative(weights: &WeightTable) -> Vec<WeightKey> {
    let rows = weights.rows().iter();
    let rows = rows.filter(|row| row.values.iter().any(|value| *value < 0));
    rows.map(|row| row.key).collect()
}

fn has(weights: &WeightTable, key: &WeightKey, is_such: fn(i64) -> bool) -> bool {
    let values = weights.get(key).unwrap_or_default();
    values.iter().any(|value| is_such(*value))
}

/// Moves as much as one row lacks and the other has.
fn lend(weights: &mut WeightTable, from: WeightKey, to: WeightKey) {
    let (Some(there), Some(here)) = (weights.get(&from), weights.get(&to)) else {
        return;
    };
    let lacking = here.iter().map(|value| value.saturating_neg().max(0));
    let values = lacking
        .zip(there)
        .map(|(lacks, has)| lacks.min((*has).max(0)));
    let values: Vec<i64> = values.collect();
    let taken: Vec<i64> = values.iter().map(|value| -value).collect();
    weights.add(from, &taken);
    weights.add(to, &values);
}

/// The nodes of the frame and line of `node` under each `[folded]` further up, from the nearest
/// one on.
fn folded_above(
    tree: &CallTree,
    folded: FrameId,
    node: NodeId,
) -> impl Iterator<Item = NodeId> + '_ {
    let leaf = tree.get(node).copied();
    let callers = std::iter::successors(leaf.map(|it| it.parent), |&caller| {
        tree.get(caller).map(|it| it.parent)
    });
    callers.filter_map(move |caller| {
        let pool = Node {
            parent: caller,
            frame: folded,
            line: 0,
        };
        let parent = tree.find(&pool)?;
        let found = tree.find(&Node { parent, ..leaf? })?;
        (found != node).then_some(found)
    })
}

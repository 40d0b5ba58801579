//! Which nodes of a call graph are kept, by pprof's rules. Called by `graph`; any thread.
//!
//! Where there are too many, not the largest ones are kept, but those that say most: a chain of
//! wrappers, each of which calls the next one and nothing else, has large totals, but no branches.

use super::limits::{Cut, GraphLimits, RankText};
use super::sums::{NodeSum, Sums};
use rperf_model::Order;
use std::cmp::Ordering;

/// Whether each node is kept, and how many are not.
pub(super) fn choose<'a>(
    sums: &Sums,
    limits: GraphLimits,
    text: impl Fn(&NodeSum) -> RankText<'a>,
) -> (Vec<bool>, Cut) {
    let nodes = &sums.nodes;
    let is_something = |sum: &NodeSum| (sum.own, sum.total, sum.calls) != (0, 0, 0);
    let is_large = |sum: &NodeSum| sum.total.unsigned_abs() >= limits.least_node;
    let mut left: Vec<usize> = (0..nodes.len())
        .filter(|&node| is_something(&nodes[node]))
        .collect();
    let all = left.len();
    left.retain(|&node| is_large(&nodes[node]));
    let large = left.len();
    if large > limits.nodes {
        let scores = scores(sums);
        left.order_by(|&a, &b| {
            let by_score = scores[b].partial_cmp(&scores[a]).unwrap_or(Ordering::Equal);
            let size = |node: usize| nodes[node].total.unsigned_abs();
            by_score
                .then_with(|| size(b).cmp(&size(a)))
                .then_with(|| text(&nodes[a]).cmp(&text(&nodes[b])))
        });
        left.truncate(limits.nodes);
    }
    let mut is_kept = vec![false; nodes.len()];
    for &node in &left {
        is_kept[node] = true;
    }
    let cut = Cut {
        small_nodes: all - large,
        further_nodes: large - left.len(),
        edges: 0,
    };
    (is_kept, cut)
}

/// How much each node says: its total times the entropy of its callers and callees, and its own
/// value. Where stacks begin or end counts for a branch.
fn scores(sums: &Sums) -> Vec<f64> {
    let nodes = &sums.nodes;
    let mut callers = vec![Vec::new(); nodes.len()];
    let mut callees = vec![Vec::new(); nodes.len()];
    for edge in sums.edges.iter().filter(|edge| edge.value != 0) {
        if edge.caller != edge.callee {
            callers[edge.callee].push(edge.value.unsigned_abs());
            callees[edge.caller].push(edge.value.unsigned_abs());
        }
    }
    let score = |node: usize| {
        let own = nodes[node].own.unsigned_abs();
        let entropy = entropy_or_one(&callers[node], 0) + entropy_or_one(&callees[node], own);
        nodes[node].total.unsigned_abs() as f64 * entropy + own as f64
    };
    (0..nodes.len()).map(score).collect()
}

/// The entropy of these shares in bits; 1 without any edge.
fn entropy_or_one(edges: &[u64], own: u64) -> f64 {
    if edges.is_empty() {
        return 1.0;
    }
    // In an order of their own, so that equal profiles have equal sums.
    let mut parts: Vec<u64> = edges.iter().copied().chain([own]).collect();
    parts.retain(|part| *part > 0);
    parts.sort_unstable();
    let whole: f64 = parts.iter().map(|part| *part as f64).sum();
    let bits = |part: &u64| {
        let share = *part as f64 / whole;
        -share * libm::log2(share)
    };
    parts.iter().map(bits).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_that_of_the_shares() {
        assert_eq!(entropy_or_one(&[], 7), 1.0);
        assert_eq!(entropy_or_one(&[5], 0), 0.0);
        assert_eq!(entropy_or_one(&[5], 5), 1.0);
        assert_eq!(entropy_or_one(&[1, 2], 1), 1.5);
        assert!(entropy_or_one(&[u64::MAX; 4], u64::MAX) > 2.0);
    }
}

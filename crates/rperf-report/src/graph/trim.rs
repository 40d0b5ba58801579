//! Which edges between the nodes of a call graph are kept. Called by `graph`; any thread.

use super::sums::EdgeSum;
use rperf_model::Order;
use std::cmp::Reverse;

/// Steps that the search for other ways may take: larger graphs are not for looking at.
const MAX_STEPS: usize = 50_000_000;

/// What is left of the edges.
pub(super) struct Trimmed {
    /// The largest first; of equal ones in the order of their callers, then of their callees.
    pub(super) edges: Vec<EdgeSum>,
    /// How many are too small.
    pub(super) cut: usize,
}

/// Edges without the small ones, but with the largest one to each node, so that it stays where it
/// belongs. A residual edge goes too where other edges lead the same way: there can be many.
pub(super) fn trim(mut edges: Vec<EdgeSum>, nodes: usize, least: u64) -> Trimmed {
    edges.retain(|edge| (edge.value, edge.calls) != (0, 0));
    edges.order_by_key(|edge| {
        let size = edge.value.unsigned_abs();
        (Reverse((size, edge.calls)), edge.caller, edge.callee)
    });
    let all = edges.len();
    let mut has_caller = vec![false; nodes];
    edges.retain(|edge| {
        let is_first = edge.caller != edge.callee && !has_caller[edge.callee];
        has_caller[edge.callee] |= is_first;
        is_first || edge.value.unsigned_abs() >= least
    });
    let cut = all - edges.len();
    let residual = edges.iter().filter(|edge| edge.is_residual).count();
    if residual.saturating_mul(edges.len() + nodes) <= MAX_STEPS {
        drop_other_ways(&mut edges, nodes);
    }
    Trimmed { edges, cut }
}

/// Drops the residual edges, the smallest first, that lead where other edges lead too.
fn drop_other_ways(edges: &mut Vec<EdgeSum>, nodes: usize) {
    let mut callees = vec![Vec::new(); nodes];
    for (index, edge) in edges.iter().enumerate() {
        callees[edge.caller].push(index);
    }
    let mut is_dropped = vec![false; edges.len()];
    let mut reached = vec![usize::MAX; nodes];
    for index in (0..edges.len())
        .rev()
        .filter(|&index| edges[index].is_residual)
    {
        let EdgeSum { caller, callee, .. } = edges[index];
        is_dropped[index] = true;
        let mut next = vec![caller];
        reached[caller] = index;
        while let Some(node) = next.pop() {
            for &edge in callees[node].iter().filter(|&&edge| !is_dropped[edge]) {
                let callee = edges[edge].callee;
                if reached[callee] != index {
                    reached[callee] = index;
                    next.push(callee);
                }
            }
        }
        is_dropped[index] = reached[callee] == index;
    }
    let mut dropped = is_dropped.into_iter();
    edges.retain(|_| !dropped.next().unwrap_or(false));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(caller: usize, callee: usize, value: i64, is_residual: bool) -> EdgeSum {
        EdgeSum {
            caller,
            callee,
            value,
            calls: 0,
            is_residual,
        }
    }

    fn ways(trimmed: &Trimmed) -> Vec<(usize, usize)> {
        let edges = trimmed.edges.iter();
        edges.map(|edge| (edge.caller, edge.callee)).collect()
    }

    #[test]
    fn small_edges_go_but_for_the_largest_to_a_node() {
        let edges = vec![
            edge(0, 1, 3, false),
            edge(0, 2, -2, false),
            edge(1, 2, 1, false),
            edge(2, 2, 1, false),
            edge(0, 3, 0, false),
        ];
        let trimmed = trim(edges, 4, 3);
        assert_eq!((ways(&trimmed), trimmed.cut), (vec![(0, 1), (0, 2)], 2));
    }

    #[test]
    fn residual_edges_go_where_there_is_another_way() {
        let edges = vec![
            edge(0, 1, 9, false),
            edge(1, 2, 8, true),
            edge(0, 2, 7, true),
            edge(2, 2, 6, true),
            edge(2, 0, 5, true),
            edge(1, 0, 4, false),
        ];
        let trimmed = trim(edges, 3, 0);
        let left = [(0, 1), (1, 2), (2, 0), (1, 0)];
        assert_eq!((ways(&trimmed), trimmed.cut), (left.to_vec(), 0));
    }
}

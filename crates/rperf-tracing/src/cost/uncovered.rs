//! Cost of tracing that found no time to be taken out of, where times are samples: most calls of a
//! broad tree have no sample, and those that have one pay for their own cost only. What is left is
//! taken from the samples of the same methods elsewhere in the tree, then from all. Arithmetic on
//! numbers that are handed in.

use crate::cost::{ThreadTimes, Times};
use crate::tree::TracedNode;
use rustc_hash::FxHashMap;

/// A part of several times, such that the parts have the right sum.
#[derive(Debug, Default)]
struct Share {
    cost_ns: f64,
    of_ns: u64,
    /// What has been taken, before and after rounding.
    exact_ns: f64,
    taken_ns: u64,
}

impl Share {
    /// The part of the next of these times, no more than there is.
    fn of(&mut self, time_ns: u64) -> u64 {
        let share = (self.cost_ns.max(0.0) / self.of_ns.max(1) as f64).min(1.0);
        self.exact_ns += share * time_ns as f64;
        let part = (self.exact_ns.round() as u64).saturating_sub(self.taken_ns);
        let part = part.min(time_ns);
        self.taken_ns += part;
        part
    }
}

impl Times {
    fn take_overhead(&mut self, ns: u64) {
        self.running_ns -= ns;
        self.overhead_ns += ns;
        self.cpu_ns = self.cpu_ns.saturating_sub(ns);
    }
}

impl ThreadTimes {
    /// Takes the cost that found no time out of that of other nodes, in proportion to it.
    pub(crate) fn spread_uncovered(&mut self, nodes: &[TracedNode]) {
        let row = |node: u32| nodes.get(node as usize).map_or(u32::MAX, |it| it.row);
        let mut methods: FxHashMap<u32, Share> = FxHashMap::default();
        for &(node, ns) in &self.uncovered {
            methods.entry(row(node)).or_default().cost_ns += ns;
        }
        for times in &self.nodes {
            if let Some(share) = methods.get_mut(&row(times.node)) {
                share.of_ns += times.running_ns;
            }
        }
        for times in &mut self.nodes {
            if let Some(share) = methods.get_mut(&row(times.node)) {
                times.take_overhead(share.of(times.running_ns));
            }
        }
        let taken = |share: &Share| share.taken_ns as f64;
        let mut rest = Share {
            cost_ns: self.uncovered_ns() - methods.values().map(taken).sum::<f64>(),
            of_ns: self.nodes.iter().map(|it| it.running_ns).sum(),
            ..Share::default()
        };
        for times in &mut self.nodes {
            times.take_overhead(rest.of(times.running_ns));
        }
        let left = rest.cost_ns - rest.taken_ns as f64;
        self.uncovered = vec![(u32::MAX, left)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TracedKind;
    use crate::tree::{ROOT, TracedFrame, TracedTree};

    fn times(node: u32, running_ns: u64, overhead_ns: u64) -> Times {
        Times {
            node,
            calls: 1,
            running_ns,
            overhead_ns,
            cpu_ns: running_ns,
        }
    }

    /// A tree of two methods: the first is called by the root and by the second.
    fn tree() -> (TracedTree, [u32; 3]) {
        let mut tree = TracedTree::default();
        let frame = |word| TracedFrame { word, method: 0 };
        let one = tree.child(ROOT, frame(1), TracedKind::Method);
        let two = tree.child(ROOT, frame(2), TracedKind::Method);
        let below = tree.child(two, frame(1), TracedKind::Method);
        (tree, [one, two, below])
    }

    fn spread(nodes: Vec<Times>, uncovered: Vec<(u32, f64)>, tree: &TracedTree) -> ThreadTimes {
        let mut times = ThreadTimes {
            nodes,
            uncovered,
            states: Vec::new(),
            used_ns: Vec::new(),
        };
        times.spread_uncovered(tree.nodes());
        times
    }

    fn shown(times: &ThreadTimes) -> Vec<(u64, u64)> {
        let nodes = times.nodes.iter();
        nodes.map(|it| (it.running_ns, it.overhead_ns)).collect()
    }

    #[test]
    fn cost_is_taken_from_the_same_method_first() {
        let (tree, [one, two, below]) = tree();
        let nodes = vec![times(one, 1_000, 5), times(two, 500, 0), times(below, 0, 7)];
        let spread = spread(nodes, vec![(below, 300.4)], &tree);
        assert_eq!(shown(&spread), [(700, 305), (500, 0), (0, 7)]);
        assert_eq!(spread.nodes[0].cpu_ns, 700);
        assert!(spread.uncovered_ns() < 1.0);
    }

    #[test]
    fn what_the_method_lacks_is_taken_from_all_in_proportion_and_no_more_than_there_is() {
        let (tree, [one, two, below]) = tree();
        let nodes = || vec![times(one, 100, 0), times(two, 999, 0), times(below, 300, 0)];
        let of_root = spread(nodes(), vec![(ROOT, 700.0)], &tree);
        assert_eq!(shown(&of_root), [(50, 50), (499, 500), (150, 150)]);
        let of_one = spread(nodes(), vec![(one, 900.0)], &tree);
        assert_eq!(shown(&of_one), [(0, 100), (499, 500), (0, 300)]);
        let of_all = spread(nodes(), vec![(one, 2_000.0)], &tree);
        assert_eq!(shown(&of_all), [(0, 100), (0, 999), (0, 300)]);
        assert_eq!(of_all.uncovered_ns(), 601.0);
    }
}

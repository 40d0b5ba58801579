//! How long the calls of each method take, in a traced session that was asked for it. A method has
//! a histogram from its first return on. In hooks, under the GVL; the rest outside of them.

use crate::event::TracedKind;
use crate::timed_calls::open_calls::TimedCall;
use crate::tree::TracedTree;
use crate::tree::folds::{Exclusion, exclusion};
use rperf_model::{Histogram, Latencies};
use rperf_vm::ResolvedFrame;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Methods at most, with 2 KB each: of others nothing is kept.
const MAX_METHODS: usize = 1 << 14;

/// The durations of calls, in ns, by the rows of their frames.
#[derive(Debug, Clone)]
pub(crate) struct MethodLatencies {
    ns_per_tick: f64,
    methods: FxHashMap<u32, Histogram>,
}

impl MethodLatencies {
    /// None yet; `ns_per_tick` is nearly the length of a tick.
    pub(crate) fn new(ns_per_tick: f64) -> Self {
        Self {
            ns_per_tick,
            methods: FxHashMap::default(),
        }
    }

    /// A call has ended. Blocks have the names of their methods, and are no calls of them.
    #[inline]
    pub(crate) fn add(&mut self, tree: &TracedTree, call: TimedCall) {
        let node = tree.node(call.node);
        if node.kind == TracedKind::Block {
            return;
        }
        let ns = (call.ticks() as f64 * self.ns_per_tick) as u64;
        match self.methods.get_mut(&node.row) {
            Some(durations) => durations.add(ns),
            None => self.add_method(node.row, ns),
        }
    }

    #[cold]
    fn add_method(&mut self, row: u32, ns: u64) {
        if self.methods.len() < MAX_METHODS {
            self.methods.entry(row).or_default().add(ns);
        }
    }

    /// Lets go of all.
    pub(crate) fn clear(&mut self) {
        self.methods.clear();
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.methods.values().map(Histogram::memory).sum()
    }

    /// With names, which are those of the frames in the order of their rows, but for those that are
    /// `excluded`. Several frames can be one method.
    pub(crate) fn named(&self, names: &[ResolvedFrame], excluded: &[Exclusion]) -> Vec<Latencies> {
        let mut methods: BTreeMap<(&str, &str), Histogram> = BTreeMap::new();
        for (row, durations) in &self.methods {
            let shown = names.get(*row as usize);
            let is_left_out = matches!(
                exclusion(excluded, *row),
                Exclusion::Asked | Exclusion::Own | Exclusion::PassesOn
            );
            if let Some(name) = shown.filter(|_| !is_left_out) {
                let method = methods.entry((&name.name, &name.path)).or_default();
                method.merge(durations);
            }
        }
        let methods = methods.into_iter();
        methods
            .map(|((name, path), durations)| Latencies {
                name: name.into(),
                path: path.into(),
                durations,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{ROOT, TracedFrame};

    fn call(node: u32, ticks: u64) -> TimedCall {
        TimedCall {
            node,
            thread: 0,
            fiber: 0,
            began: 0,
            ended: ticks,
        }
    }

    #[test]
    fn frames_of_one_method_are_one_and_blocks_are_none() {
        let mut tree = TracedTree::default();
        let frame = |word| TracedFrame { word, method: 0 };
        let nodes = [
            tree.child(ROOT, frame(8), TracedKind::Method),
            tree.child(ROOT, frame(16), TracedKind::Method),
            tree.child(ROOT, frame(8), TracedKind::Block),
        ];
        let mut latencies = MethodLatencies::new(0.5);
        for node in nodes {
            latencies.add(&tree, call(node, 2_000));
        }
        assert!(latencies.memory() > 0);
        let name = ResolvedFrame {
            name: "Cart#total".into(),
            path: "cart.rb".into(),
            first_line: 1,
        };
        let named = latencies.named(&[name.clone(), name], &[]);
        assert_eq!(named.len(), 1);
        let durations = &named[0].durations;
        assert_eq!((durations.count(), durations.max()), (2, 1_000));
        latencies.clear();
        assert!(latencies.named(&[], &[]).is_empty());
    }

    #[test]
    fn methods_that_find_no_room_are_left_out() {
        let mut tree = TracedTree::default();
        let mut latencies = MethodLatencies::new(1.0);
        for word in 1..=MAX_METHODS + 5 {
            let frame = TracedFrame { word, method: 0 };
            let node = tree.child(ROOT, frame, TracedKind::Method);
            latencies.add(&tree, call(node, 7));
        }
        assert_eq!(latencies.methods.len(), MAX_METHODS);
    }
}

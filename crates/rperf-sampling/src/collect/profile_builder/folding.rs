//! Folding of a profile in the making that has grown too large. On the worker, or where the last epoch
//! is added, without the GVL.

use super::ProfileBuilder;
use crate::Values;
use crate::collect::sample::merge_ended_threads;
use crate::collect::sample_key::SampleKey;
use rperf_model::fold::{FoldLimits, FoldRow, FoldedTree};
use rustc_hash::FxHashMap;

/// What is left after folding, in eighths of the limits: each time visits all nodes and rows, so it
/// must not come again too soon.
const LEFT_EIGHTHS: usize = 6;

/// Where leaves alone take more than the limits, there must be so many eighths more before the next
/// time.
const MORE_EIGHTHS: usize = 2;

impl ProfileBuilder {
    /// Folds the lightest stacks, if there are more nodes or rows than the limits allow.
    pub(super) fn fold_if_full(&mut self) {
        if self.sums.len() > self.fold_at.rows && !self.ended.is_empty() {
            self.kept.forget_threads(&self.ended);
            self.counts.folded_threads += merge_ended_threads(&mut self.sums, &mut self.ended);
        }
        if self.tables.tree.len() > self.fold_at.nodes || self.sums.len() > self.fold_at.rows {
            self.fold();
        }
    }

    fn fold(&mut self) {
        let most = FoldLimits {
            nodes: self.limits.nodes,
            rows: self.limits.rows,
        };
        let weight = |values: &Values| values.times.weight_ns(self.limits.mode);
        let rows: Vec<FoldRow> = self
            .sums()
            .map(|(key, values)| (key.row(key.labels), weight(&values)))
            .collect();
        let frame = self.tables.folded_frame();
        let left = |most: usize| most / 8 * LEFT_EIGHTHS;
        let folded = self.tables.tree.fold(
            frame,
            &rows,
            FoldLimits {
                nodes: left(most.nodes),
                rows: left(most.rows),
            },
        );
        drop(rows);
        self.sums = moved(std::mem::take(&mut self.sums), &folded);
        self.kept.rekey(|key| SampleKey {
            node: folded.of(key.node),
            ..key
        });
        for sample in &mut self.raw {
            sample.node = folded.of(sample.node);
        }
        self.truncated = self.truncated.map(|node| folded.of(node));
        self.tables.tree = folded.tree;
        let next = |size: usize, most: usize| (size + size / 8 * MORE_EIGHTHS).max(most);
        self.fold_at = FoldLimits {
            nodes: next(self.tables.tree.len(), most.nodes),
            rows: next(self.sums.len(), most.rows),
        };
    }
}

fn moved(sums: FxHashMap<SampleKey, Values>, folded: &FoldedTree) -> FxHashMap<SampleKey, Values> {
    let mut moved = FxHashMap::<SampleKey, Values>::default();
    moved.reserve(sums.len());
    for (mut key, values) in sums {
        key.node = folded.of(key.node);
        moved.entry(key).or_default().add(values);
    }
    moved
}

//! Folding of whole profiles.

use super::{FoldLimits, FoldedTree, folded_frame};
use crate::frames::frame_kind::FOLDED_FRAME;
use crate::{Column, Frame, FrameId, Profile, RawSamples, WeightTable, Weights};

/// What lies under `[folded]` in a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FoldedSum {
    /// Samples.
    pub samples: u64,
    /// Their time, in ns; 0 if the default column isn't one of times.
    pub ns: u64,
}

impl Profile {
    /// Folds the lightest stacks by the default column, if there are more nodes or rows than
    /// `limits` allow, and counts what was folded. Self times stay as they are.
    pub fn fold(&mut self, limits: FoldLimits) {
        if self.tree.len() <= limits.nodes && self.weights.len() <= limits.rows {
            return;
        }
        let before = self.folded();
        let column = self.schema.default_column();
        let rows: Vec<_> = self
            .weights
            .iter()
            .map(|row| (row.key, row.value(column).unsigned_abs()))
            .collect();
        let frame = folded_frame(&mut self.strings, &mut self.frames);
        let folded = self.tree.fold(frame, &rows, limits);
        self.weights = moved(&self.weights, &folded);
        if let Some(raw) = &mut self.raw_samples {
            move_raw(raw, &folded);
        }
        self.tree = folded.tree;
        let after = self.folded();
        let counters = &mut self.meta.counters;
        for (count, after, before) in [
            (&mut counters.folded_samples, after.samples, before.samples),
            (&mut counters.folded_ns, after.ns, before.ns),
        ] {
            *count = count.saturating_add(after.saturating_sub(before));
        }
    }

    /// What lies under `[folded]`.
    pub fn folded(&self) -> FoldedSum {
        let Some(frame) = self.find_folded_frame() else {
            return FoldedSum::default();
        };
        let is_leaf = self.tree.folded_leaves(frame);
        let rows = self.weights.iter();
        let rows = rows.filter(|row| is_leaf.get(row.key.node.0 as usize) == Some(&true));
        let samples = self.schema.samples();
        let ns = Some(self.schema.default_column())
            .filter(|_| self.schema.default_type().unit == "nanoseconds");
        let mut sum = FoldedSum::default();
        for row in rows {
            let value = |column: Option<Column>| column.map(|it| row.value(it).unsigned_abs());
            sum.samples = sum.samples.saturating_add(value(samples).unwrap_or(1));
            sum.ns = sum.ns.saturating_add(value(ns).unwrap_or(0));
        }
        sum
    }

    pub(crate) fn find_folded_frame(&self) -> Option<FrameId> {
        let (name, path) = FOLDED_FRAME;
        self.frames.find(&Frame {
            name: self.strings.find(name)?,
            path: self.strings.find(path)?,
            first_line: 0,
        })
    }
}

fn moved(weights: &Weights, folded: &FoldedTree) -> Weights {
    let mut table = WeightTable::new(weights.width());
    for mut row in weights.iter() {
        row.key.node = folded.of(row.key.node);
        table.add(row.key, row.values);
    }
    table.into_weights()
}

fn move_raw(raw: &mut RawSamples, folded: &FoldedTree) {
    raw.weights
        .change_keys(|key| key.node = folded.of(key.node));
}

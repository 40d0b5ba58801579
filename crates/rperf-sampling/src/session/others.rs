//! What was recorded of threads of other Ractors becomes part of the session's call tree and sums.

use super::Session;
use crate::ractors::{Part, move_samples};
use rperf_model::LabelSetId;
use rperf_vm::{LabelSet, LabelTable};

/// Ractors that have a label of their own in a session. Further ones share one.
const LABELLED: usize = 1000;

/// What these have in place of a number, and those whose number isn't known.
const FURTHER: &str = "other";

impl Session {
    /// Takes in what was recorded of threads of other Ractors.
    pub fn add_others(&mut self, part: Part<'_>) {
        let Part {
            tree,
            sums,
            counters,
            names,
        } = part;
        self.thread_names.add(names);
        let (labels, known) = (&mut self.recording.labels, &mut self.ractor_labels);
        let mut number_of = |ractor: LabelSetId| {
            let row = if known.len() < LABELLED || known.contains_key(&ractor.0) {
                ractor.0
            } else {
                0
            };
            let set = known.entry(row).or_insert_with(|| label_of(row));
            LabelTable::number(labels, set, 1)
        };
        let (sums, truncated) = move_samples(sums, tree, &mut self.recording.tree, &mut number_of);
        self.recording.counters.add(&counters);
        self.recording.counters.truncated += truncated;
        self.worker.add(sums);
    }
}

fn label_of(ractor: u32) -> LabelSet {
    match ractor {
        0 => LabelSet::of_ractor(FURTHER),
        number => LabelSet::of_ractor(&number.to_string()),
    }
}

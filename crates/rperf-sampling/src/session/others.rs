//! What was recorded of threads of other Ractors becomes part of the session's call tree and sums.

use super::Session;
use crate::ractors::{Part, move_samples};
use rperf_model::LabelSetId;
use rperf_vm::LabelTable;

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
        let (labels, others) = (&mut self.recording.labels, &mut self.others);
        let mut number_of =
            |ractor: LabelSetId| LabelTable::number(labels, others.label_of(ractor.0), 1);
        let (sums, truncated) = move_samples(sums, tree, &mut self.recording.tree, &mut number_of);
        self.recording.counters.add(&counters);
        self.recording.counters.truncated += truncated;
        self.worker.add(sums);
    }
}

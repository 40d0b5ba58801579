//! Which labels count: each thread has sums for each label set that its fibers have had, and the
//! present ones are at hand, so that calls cost the same with labels as without. Under the GVL, where
//! a fiber gets labels and where another one runs.

use crate::profile::label_sets::TracedLabels;
use crate::tracer::Tracer;
use crate::tree::threads::ThreadNumber;
use rperf_model::LabelSetId;
use rperf_vm::LabelSet;
use std::mem;
use std::sync::Arc;

impl Tracer {
    /// The fiber that runs has these labels: from `now` on all counts under them.
    pub fn label(&mut self, labels: Option<&LabelSet>, now: u64) {
        let table = &mut self.labels.table;
        let number = labels.map_or(LabelSetId::default(), |set| table.number(set, 1));
        let present = self.threads.get_running().map(|it| it.labels);
        if present.is_some_and(|present| present != number) {
            self.charge_unless_paused(now);
            self.count_under(self.threads.running_number(), number);
        }
    }

    /// The fiber that a thread is at has these labels, as the thread is announced.
    pub fn label_thread(&mut self, thread: ThreadNumber, labels: Option<&LabelSet>) {
        if let Some(set) = labels {
            let number = self.labels.table.number(set, 1);
            self.count_under(thread, number);
        }
    }

    /// What comes on a thread counts under the labels with this number, or under none if they find no
    /// room.
    fn count_under(&mut self, thread: ThreadNumber, number: LabelSetId) {
        let (labels, unlabelled) = (&mut self.labels, LabelSetId::default());
        let Some(thread) = self.threads.get_mut(thread) else {
            return;
        };
        let is_new = number != unlabelled && !thread.put_away.contains_key(&number);
        let number = match is_new && labels.sums_bytes >= labels.cap {
            true => {
                labels.refused += 1;
                unlabelled
            }
            false => number,
        };
        if number == thread.labels {
            return;
        }
        let next = thread.put_away.remove(&number).unwrap_or_default();
        labels.sums_bytes = labels.sums_bytes.saturating_sub(next.memory());
        let last = mem::replace(&mut thread.sums, next);
        labels.sums_bytes += last.memory();
        thread.put_away.insert(thread.labels, last);
        thread.labels = number;
    }

    /// Lets go of what was counted under all labels. Fibers keep those that they have.
    pub(crate) fn clear_labelled(&mut self) {
        let sets = self.labels.table.take_sets();
        let labels = TracedLabels {
            cap: self.labels.cap,
            ..TracedLabels::default()
        };
        self.labels = labels;
        for thread in self.threads.iter_mut() {
            thread.sums = Default::default();
            thread.put_away = Default::default();
            let set = sets.get((thread.labels.0 as usize).wrapping_sub(1));
            let set = set.map(|texts| LabelSet::of(Arc::clone(texts)));
            let number = set.map(|set| self.labels.table.number(&set, 1));
            thread.labels = number.unwrap_or_default();
        }
    }

    /// From now on the sums of label sets have so much room.
    #[cfg(test)]
    pub(crate) fn limit_labels(&mut self, bytes: usize) {
        self.labels.cap = bytes;
    }
}

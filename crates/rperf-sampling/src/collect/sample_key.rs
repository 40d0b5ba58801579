//! What samples are summed by: what the profile's rows have, and why the collection ran, which becomes a
//! label as the profile is made. On the worker.

use rperf_model::{GcCause, LabelSetId, NodeId, State, WeightKey};

/// What a sample is summed by. All bits of the labels have a meaning, but a key has room beside its state:
/// no table grows by a cause but by rows of collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKey {
    /// The stack.
    pub node: NodeId,
    /// The thread's seq.
    pub thread: u32,
    /// The packed number of the label set.
    pub labels: LabelSetId,
    /// What the thread was doing.
    pub state: State,
    /// Why the collection ran, where that is known.
    pub gc: Option<GcCause>,
}

const _: () = assert!(size_of::<SampleKey>() == size_of::<WeightKey>());

impl SampleKey {
    /// The key of a row of a table without causes, with these labels.
    pub fn row(self, labels: LabelSetId) -> WeightKey {
        WeightKey {
            node: self.node,
            thread: self.thread,
            labels,
            state: self.state,
        }
    }
}

//! The point of a sample. Made as it is recorded, and kept for remainders; under the GVL.

use rperf_model::{LabelSetId, NodeId};

/// Where a sample was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePoint {
    /// Its stack.
    pub node: NodeId,
    /// The number of its label set.
    pub labels: LabelSetId,
}

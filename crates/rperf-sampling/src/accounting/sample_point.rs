//! The point of a sample. Made as it is recorded, and kept for remainders; under the GVL.

use rperf_model::{GcCause, LabelSetId, NodeId};
use rperf_vm::RequestNumber;

/// Where a sample was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplePoint {
    /// Its stack.
    pub node: NodeId,
    /// The number of its label set.
    pub labels: LabelSetId,
    /// The request that it is of.
    pub request: RequestNumber,
    /// Why the collection ran that it is of, where that is known.
    pub gc: Option<GcCause>,
}

//! The stack at which a thread gives its Ractor's GVL up.

use crate::accounting::SamplePoint;
use rperf_model::{LabelSetId, NodeId};
use rperf_vm::RequestNumber;

/// The stack of the time off the GVL that goes on, and when one was taken last.
#[derive(Debug, Default)]
pub(super) struct OffGvlStack {
    /// Where the thread gave the GVL up, if the stack was taken then.
    at: Option<SamplePoint>,
    taken_ns: u64,
}

impl OffGvlStack {
    /// Whether the last one was taken at least an `interval` before `now`.
    pub(super) fn is_due(&self, now: u64, interval: u64) -> bool {
        now.saturating_sub(self.taken_ns) >= interval
    }

    /// A stack is taken at `now`.
    pub(super) fn begin(&mut self, now: u64) {
        self.taken_ns = now;
    }

    /// The stack that is taken is at this node of the call tree.
    pub(super) fn note(&mut self, node: NodeId) {
        self.at = Some(SamplePoint {
            node,
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            gc: None,
        });
    }

    /// The stack isn't known any more.
    pub(super) fn forget(&mut self) {
        self.at = None;
    }

    /// Where the thread gave the GVL up, if that is known.
    pub(super) fn at(&self) -> Option<SamplePoint> {
        self.at
    }
}

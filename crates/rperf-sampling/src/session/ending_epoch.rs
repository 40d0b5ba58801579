//! The epoch of a session that is being ended. With the GVL, in collections too.

use rperf_vm::{CapturedNode, FrameNames, FrameWord};

/// An epoch whose frames are being given names. The worker keeps what it has collected.
#[derive(Debug)]
pub(super) struct EndingEpoch {
    pub(super) nodes: Vec<CapturedNode>,
    pub(super) frames: FrameNames,
    /// The time that has gone into its end, in ns.
    pub(super) spent_ns: u64,
}

impl EndingEpoch {
    /// The frames that must stay alive.
    pub(super) fn unnamed(&self) -> &[FrameWord] {
        self.frames.unnamed()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<CapturedNode>() + self.frames.memory()
    }
}

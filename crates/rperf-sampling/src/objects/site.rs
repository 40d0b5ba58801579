//! A sample of objects: what it is of, and what it stands for.

use rperf_model::{LabelSetId, NodeId};
use rperf_vm::{FrameWord, LabelSet, Stack};

/// A new object that becomes a sample.
#[derive(Debug, Clone, Copy)]
pub struct SampledObject<'a> {
    /// The object.
    pub object: FrameWord,
    /// The bytes of its slot.
    pub bytes: u64,
    /// Its class; 0 for what the program doesn't see.
    pub class: FrameWord,
    /// The number of the thread that has made it; 0 if that isn't known.
    pub thread: u32,
    /// The thread's stack, if it could be taken.
    pub stack: Option<Stack<'a>>,
    /// The labels of its fiber.
    pub labels: Option<&'a LabelSet>,
}

/// Objects and bytes that a sample stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Weight {
    pub(super) objects: f64,
    pub(super) bytes: f64,
}

impl Weight {
    pub(super) fn add(&mut self, more: Weight) {
        self.objects += more.objects;
        self.bytes += more.bytes;
    }
}

/// Where objects are made, and of what class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Site {
    pub(super) node: NodeId,
    pub(super) thread: u32,
    pub(super) labels: LabelSetId,
    pub(super) class: FrameWord,
}

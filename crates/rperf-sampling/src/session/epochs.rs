//! The end of an epoch: names take the place of frames. In the sampling callback, or before a
//! snapshot, with the GVL; the frames are named a few at a time, and the session goes on.

use super::ending_epoch::EndingEpoch;
use super::{EPOCH_ROWS, Session, epoch_nodes};
use crate::collect::messages::NamedEpoch;
use rperf_vm::{CapturedNode, CapturedTree, FrameNames, FrameWord, ResolvedFrame, clock};

/// Ends of epochs hold the program up for at most one part in this many of the
/// time, if the tree has room enough.
const EPOCH_END_SHARE: u64 = 500;

impl Session {
    /// Whether the epoch should end at `now`: the call tree or its sums are full, or it has grown
    /// and the last end lies so far back that this one takes little of the time.
    #[inline]
    pub fn is_epoch_over(&self, now: u64) -> bool {
        let over = self.recording.tree.is_full()
            || self.worker.epoch_rows() >= EPOCH_ROWS
            || (now >= self.epoch.no_end_before
                && self.recording.tree.has_outgrown(self.worker.earlier_size()));
        over && !self.is_ending()
    }

    /// Begins to end the epoch: an empty call tree takes over. The caller then
    /// lets all threads forget their nodes, and names the frames
    /// ([`Session::next_unnamed`], [`Session::name`]).
    pub fn begin_epoch_end(&mut self) {
        let since = clock::monotonic_ns();
        self.worker.end_epoch(self.recording.buffer.take());
        let (nodes, frames) = self.take_tree();
        self.epoch.begin_end(EndingEpoch {
            nodes,
            frames,
            spent_ns: clock::monotonic_ns().saturating_sub(since),
        });
    }

    /// The frame of the epoch that is being ended which is to be named next; `None` if all have
    /// names, or no epoch is being ended.
    pub fn next_unnamed(&self) -> Option<FrameWord> {
        self.epoch.next_unnamed()
    }

    /// Names `frame`, if it is still the next one.
    pub fn name(&mut self, frame: FrameWord, name: ResolvedFrame) {
        self.epoch.name(frame, name);
    }

    /// Whether frames of an epoch are being given names.
    #[inline]
    pub fn is_ending(&self) -> bool {
        self.epoch.is_ending()
    }

    /// The caller has named frames for `spent_ns`. Once all have names, the epoch ends: the
    /// frames are let go, and the worker gets the rest.
    pub fn end_epoch_if_named(&mut self, spent_ns: u64) {
        let Some(ended) = self.epoch.end_if_named(spent_ns) else {
            return;
        };
        let took = ended.spent_ns;
        self.worker.add_epoch(NamedEpoch {
            nodes: ended.nodes,
            names: ended.frames.into_names(),
        });
        self.recording.counters.sampling_time_ns += took;
        self.epoch.no_end_before = clock::monotonic_ns() + took * EPOCH_END_SHARE;
    }

    /// The call tree's nodes and frames; an empty tree takes over.
    pub(super) fn take_tree(&mut self) -> (Vec<CapturedNode>, FrameNames) {
        let empty = CapturedTree::new(epoch_nodes(&self.config));
        let (nodes, frames) = self.recording.replace_tree(empty).into_parts();
        let names = self.epoch.begin_next();
        if let Some(told) = &mut self.told {
            told.forget_tree();
        }
        (nodes, FrameNames::new(frames, names))
    }
}

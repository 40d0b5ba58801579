//! Letting go of what a session has collected, while it goes on: snapshots that
//! follow one another add up to what a session without them would have said.

use super::{EndingEpoch, Session};
use crate::call_tree::{CapturedNode, CapturedTree};
use crate::counters::SessionCounters;
use crate::labels::LabelTable;
use crate::sample::SampleSums;
use crate::snapshot::Snapshot;
use crate::worker::WorkerEnded;

impl Session {
    /// Everything up to `now`, of which nothing stays: it goes on from here as one
    /// that has just started, with `threads` threads. Flush the threads first.
    /// Afterwards the caller lets them forget their points, resolves the frames
    /// ([`Session::ending_frame`]) and calls [`Session::end_clear`].
    /// Fails if the worker has ended early. Not while [`Session::is_ending`].
    pub fn begin_clear(&mut self, now: u64, threads: u32) -> Result<Snapshot, WorkerEnded> {
        let reply = self.worker.take_all(self.recording.buffer.take())?;
        let snapshot = self.describe(now, reply);
        self.ending = Some(EndingEpoch {
            since: now,
            tree: self.take_tree(),
            collected: SampleSums::default(),
        });
        self.begin(now);
        self.recording.labels = LabelTable::default();
        self.recording.counters = SessionCounters {
            threads,
            ..SessionCounters::default()
        };
        self.triggers_before += snapshot.triggers;
        self.recording.buffer.forget_dropped();
        self.budget.forget_longest();
        Ok(snapshot)
    }

    /// Lets go of the frames of what was cleared; returns its nodes.
    pub fn end_clear(&mut self) -> Vec<CapturedNode> {
        let ending = self.ending.take();
        ending.map_or_else(Vec::new, |epoch| epoch.tree.into_nodes())
    }

    /// The call tree; an empty one takes over.
    pub(super) fn take_tree(&mut self) -> CapturedTree {
        std::mem::replace(
            &mut self.recording.tree,
            CapturedTree::new(super::EPOCH_NODE_CAP),
        )
    }
}

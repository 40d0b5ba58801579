//! Taking what a session has collected: a copy of it, all of it while the session goes on, or all
//! of it at its end. With the GVL, which is needed for a moment only, however much there is:
//! tables change hands, and what remains to be done needs no session.

use super::Session;
use super::kept_since::KeptSince;
use crate::collect::messages::{AwaitedReply, WorkerEnded};
use crate::counters::SessionCounters;
use crate::session::snapshot::{Counted, Period, Snapshot, Taken, Texts};
use rperf_vm::{CapturedNode, FrameNames, LabelTable, LabelTexts};

impl Session {
    /// Everything up to `now`; the session goes on. Flush the threads first. The nodes are copied
    /// to `room`, which is best as large as [`Session::nodes`]. The frames have the names that are
    /// known ([`Session::learn_names`]).
    /// Fails if the worker has ended early. Not while [`Session::is_ending`].
    pub fn snapshot(
        &mut self,
        now: u64,
        mut room: Vec<CapturedNode>,
    ) -> Result<(Taken, FrameNames), WorkerEnded> {
        let reply = self.worker.report(self.recording.buffer.take())?;
        let labels = self.recording.labels.sets().to_vec();
        room.clear();
        room.extend_from_slice(self.recording.tree.nodes());
        let frames = self.recording.tree.frames().to_vec();
        let frames = FrameNames::new(frames, self.epoch.names().to_vec());
        Ok((self.taken(now, reply, room, labels), frames))
    }

    /// Everything up to `now`, of which nothing stays: it goes on from here as one
    /// that has just started, with `threads` threads. Snapshots that follow one another add up
    /// to what a session without them would have said. Flush the threads first; afterwards the
    /// caller lets them forget their points.
    /// Fails if the worker has ended early. Not while [`Session::is_ending`].
    pub fn clear(&mut self, now: u64, threads: u32) -> Result<(Taken, FrameNames), WorkerEnded> {
        let reply = self.worker.take_all(self.recording.buffer.take())?;
        let labels = self.take_labels();
        let (nodes, frames) = self.take_tree();
        let taken = self.taken(now, reply, nodes, labels);
        self.thread_names.forget_all_ended();
        self.begin(now);
        self.recording.counters = SessionCounters {
            threads,
            ..SessionCounters::default()
        };
        self.kept_since.triggers_before += taken.triggers();
        self.recording.buffer.forget_dropped();
        self.budget.forget_longest();
        self.recording.labels = LabelTable::default();
        if let Some(told) = &mut self.told {
            told.forget_labels();
        }
        Ok((taken, frames))
    }

    /// Everything up to `now`, and the end of the worker and the timer.
    /// Fails if the worker had ended early. Not while [`Session::is_ending`].
    pub fn stop(mut self, now: u64) -> Result<(Taken, FrameNames), WorkerEnded> {
        self.end_tick_capture();
        let reply = self.worker.stop(self.recording.buffer.take())?;
        let labels = self.take_labels();
        let (nodes, frames) = self.take_tree();
        Ok((self.taken(now, reply, nodes, labels), frames))
    }

    /// How many nodes the call tree has.
    pub fn nodes(&self) -> usize {
        self.recording.tree.nodes().len()
    }

    /// Which call tree it is: no other one of this session has this number.
    pub fn epoch(&self) -> u64 {
        self.epoch.number()
    }

    /// Keeps the names that a snapshot has found out of the first frames of the call tree with
    /// number `epoch`: no frame is named twice as long as that tree is there.
    pub fn learn_names(&mut self, epoch: u64, frames: &FrameNames) {
        if epoch == self.epoch.number() {
            self.epoch.learn_names(frames);
        }
    }

    fn take_labels(&mut self) -> Vec<LabelTexts> {
        self.recording.labels.take_sets()
    }

    fn taken(
        &self,
        now: u64,
        reply: AwaitedReply,
        nodes: Vec<CapturedNode>,
        label_sets: Vec<LabelTexts>,
    ) -> Taken {
        let KeptSince {
            start_ns,
            start_realtime_ns,
            triggers_before,
        } = self.kept_since;
        let snapshot = Snapshot {
            config: self.config,
            capture: self.tick_stacks.capture(),
            missing: self.tick_stacks.missing(),
            period: Period {
                start_time_ns: start_realtime_ns,
                start_ns,
                end_ns: now,
            },
            collected: Default::default(),
            earlier: Default::default(),
            counted: Counted {
                counters: self.recording.counters,
                intervals: self.budget.longest(),
                dropped: self.recording.buffer.dropped(),
                triggers: self.worker.ticks().triggers() - triggers_before,
                unlabelled: self.recording.labels.refused(),
            },
            texts: Texts {
                label_sets,
                ops: Vec::new(),
                thread_names: self.thread_names.clone(),
                request_word: self.request_word(),
            },
        };
        Taken::new(snapshot, reply, nodes)
    }
}

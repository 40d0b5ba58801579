//! A session that is watched: what is new goes to the worker, a few nodes and label sets at a time.
//! In a callback of the VM's, with the GVL.

use super::Session;
use super::told::part;
use crate::collect::shared::{News, SharedTable};
use crate::counters::StackCounts;
use rperf_model::shared_sums::SumsFacts;
use rperf_vm::{FrameWord, ResolvedFrame, clock};

/// Nodes that are copied in one go.
const NODES: usize = 1 << 14;
/// Label sets.
const LABEL_SETS: usize = 1 << 12;

impl Session {
    /// Whether somebody watches.
    pub fn is_watched(&self) -> bool {
        self.told.is_some()
    }

    /// The frame of the call tree that is to be named next for those who watch.
    pub fn next_untold(&self) -> Option<FrameWord> {
        let frames = self.recording.tree.frames();
        frames.get(self.epoch.names().len()).copied()
    }

    /// Names `frame`, if it is still the next one.
    pub fn tell_name(&mut self, frame: FrameWord, name: ResolvedFrame) {
        if self.next_untold() == Some(frame) {
            self.epoch.push_name(name);
        }
    }

    /// Somebody watches: tells the worker what is new, as of `now`. `reply` gets the table on the
    /// worker's thread, and whether all that there is was told. `since` is when the work for it
    /// began.
    pub fn tell(
        &mut self,
        now: u64,
        since: u64,
        reply: impl FnOnce(&SharedTable, bool) + Send + 'static,
    ) {
        let is_first = self.told.is_none();
        let mut told = self.told.unwrap_or_default();
        let recording = &mut self.recording;
        let (nodes, sets) = (recording.tree.nodes(), recording.labels.sets());
        let new_nodes = part(nodes, &mut told.nodes, NODES);
        let labels = part(sets, &mut told.label_sets, LABEL_SETS);
        let names = part(self.epoch.names(), &mut told.names, usize::MAX);
        let is_complete = told.nodes == nodes.len()
            && told.label_sets == sets.len()
            && told.names == recording.tree.frames().len()
            && !self.epoch.is_ending();
        let samples = recording.buffer.take_early();
        self.told = Some(told);
        let facts = self.facts(now);
        self.worker.tell(News {
            is_first,
            samples,
            nodes: new_nodes,
            names,
            labels,
            facts,
            reply: Box::new(move |table| reply(table, is_complete)),
        });
        let end = clock::monotonic_ns();
        self.count_sampling(end, StackCounts::default(), end.saturating_sub(since));
    }

    /// Nobody watches any more.
    pub fn end_watch(&mut self) {
        if self.told.take().is_some() {
            self.worker.end_watch();
        }
    }

    fn facts(&self, now: u64) -> SumsFacts {
        let (config, counters) = (self.config, &self.recording.counters);
        let mut dropped = self.recording.buffer.dropped();
        dropped.add(counters.uncaptured);
        SumsFacts {
            mode: config.mode,
            frequency: config.frequency,
            blames: config.blames,
            start_ns: self.kept_since.start_ns,
            as_of_ns: now,
            sampling_ns: counters.sampling_time_ns,
            dropped_ns: dropped.times.weight_ns(config.mode),
        }
    }
}

#[cfg(test)]
mod tests;

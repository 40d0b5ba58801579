//! The worker's side of a session that is watched: what it collects also goes into shared sums,
//! whose stacks have names. It gets nodes and names a few at a time, and what it has no name for
//! yet waits. On the worker's thread.

use crate::Values;
use crate::collect::packed_labels::PackedLabels;
use crate::collect::profile_builder::ProfileBuilder;
use crate::collect::sample::{Sample, SampleSums, has_to_fold, merge_ended_threads};
use crate::collect::sample_key::SampleKey;
use rperf_model::shared_sums::{Moved, SharedSums, SumsFacts, SumsValues};
use rperf_model::{FrameId, LabelSetId};
use rperf_vm::{CapturedNode, FOLDED, LabelTexts, ResolvedFrame, TRUNCATED};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

mod feed_nodes;

use feed_nodes::{FeedFrame, FeedNodes};

/// The table, which those who watch read on a thread of theirs.
pub type SharedTable = Arc<Mutex<SharedSums>>;

/// What the sampling side knows since it has last told.
pub struct News {
    /// Somebody begins to watch: all of it is new.
    pub is_first: bool,
    /// Samples that have not been handed over yet.
    pub samples: Vec<Sample>,
    /// Further nodes of the call tree.
    pub nodes: Vec<CapturedNode>,
    /// Names of further frames.
    pub names: Vec<Arc<ResolvedFrame>>,
    /// Further label sets.
    pub labels: Vec<LabelTexts>,
    /// Facts about the session.
    pub facts: SumsFacts,
    /// Gets the table when all of this is in it.
    pub reply: Box<dyn FnOnce(&SharedTable) + Send>,
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News").finish_non_exhaustive()
    }
}

/// What leads from what the worker collects to the table.
#[derive(Debug)]
pub struct SharedFeed {
    table: SharedTable,
    /// What was in the profile before.
    earlier: EpochFeed,
    /// Epochs that are over, and whose frames are being given names.
    ended: VecDeque<EpochFeed>,
    present: EpochFeed,
    /// The table's number of each label set.
    labels: Vec<LabelSetId>,
}

/// The samples of an epoch on their way.
#[derive(Debug, Default)]
struct EpochFeed {
    frames: Vec<FrameId>,
    /// Nodes with frames that have no name yet, and those behind them.
    unnamed: VecDeque<CapturedNode>,
    nodes: FeedNodes,
    /// Samples that are not in the table yet.
    pending: FxHashMap<SampleKey, Values>,
    /// Threads that ended with these samples.
    ended_threads: Vec<u32>,
}

impl SharedFeed {
    /// The feed of a session that has collected so much until now: in epochs that have names, in
    /// epochs that have none yet, and in the present one. The table has `nodes` nodes at most.
    pub fn new(
        nodes: usize,
        earlier: &ProfileBuilder,
        unnamed: &VecDeque<SampleSums>,
        present: &SampleSums,
    ) -> Self {
        let mut table = SharedSums::new(nodes);
        let mut known = EpochFeed::default();
        for (parent, frame, line) in earlier.nodes() {
            let frame = FeedFrame::named(frame, &mut table);
            known.nodes.add(parent, frame, line, &mut table);
        }
        earlier
            .sums()
            .for_each(|(key, values)| known.add(key, values));
        let of_sums = |sums: &SampleSums| {
            let mut feed = EpochFeed::default();
            feed.add_sums(sums);
            feed
        };
        Self {
            table: Arc::new(Mutex::new(table)),
            earlier: known,
            ended: unnamed.iter().map(of_sums).collect(),
            present: of_sums(present),
            labels: vec![LabelSetId::default()],
        }
    }

    /// Takes samples in.
    pub fn add(&mut self, samples: &[Sample]) {
        for sample in samples {
            if sample.has_ended() {
                self.present.ended_threads.push(sample.thread);
            } else if sample.request_news().is_none() {
                self.present.add(sample.key(), sample.values());
            }
        }
        self.present.fold_if_many();
    }

    /// Takes sums in.
    pub fn add_sums(&mut self, sums: &SampleSums) {
        self.present.add_sums(sums);
        self.present.fold_if_many();
    }

    /// The epoch is over.
    pub fn end_epoch(&mut self) {
        self.ended.push_back(std::mem::take(&mut self.present));
    }

    /// The first of the epochs that are over has all names; these are all of its nodes.
    pub fn add_epoch(&mut self, nodes: &[CapturedNode], names: &[Arc<ResolvedFrame>]) {
        let Some(mut feed) = self.ended.pop_front() else {
            return;
        };
        let shared = Arc::clone(&self.table);
        let mut table = lock(&shared);
        let (known_nodes, known_names) = feed.known();
        let new_nodes = nodes.get(known_nodes..).unwrap_or_default();
        let new_names = names.get(known_names..).unwrap_or_default();
        feed.learn(new_nodes, new_names, &mut table);
        feed.flush(&mut table, &self.labels);
        let moved = table.fold_stacks_if_full();
        self.follow(moved.as_ref(), Some(&mut feed), &table);
        drop(table);
        // Labels that aren't known yet come with the next news.
        self.earlier.take_rest_of(feed);
    }

    /// Takes news in but for the samples, and replies.
    pub fn tell(&mut self, news: News) {
        let shared = Arc::clone(&self.table);
        let mut table = lock(&shared);
        for set in &news.labels {
            let pairs = set.iter().map(|(key, value)| (&**key, &**value));
            self.labels.push(table.label_set(pairs));
        }
        self.earlier.flush(&mut table, &self.labels);
        self.present.learn(&news.nodes, &news.names, &mut table);
        self.present.flush(&mut table, &self.labels);
        table.fold_if_many();
        table.facts = news.facts;
        let moved = table.fold_stacks_if_full();
        self.follow(moved.as_ref(), None, &table);
        drop(table);
        (news.reply)(&self.table);
    }

    /// The table may have folded stacks, and numbers its nodes anew then.
    fn follow(&mut self, moved: Option<&Moved>, feed: Option<&mut EpochFeed>, table: &SharedSums) {
        let Some(moved) = moved else {
            return;
        };
        let feeds = [&mut self.earlier, &mut self.present].into_iter();
        for feed in feeds.chain(&mut self.ended).chain(feed) {
            feed.nodes.follow(moved, table);
        }
    }

    /// All that was collected is gone.
    pub fn clear(&mut self) {
        lock(&self.table).clear();
        *self = Self {
            table: Arc::clone(&self.table),
            earlier: EpochFeed::default(),
            ended: VecDeque::new(),
            present: EpochFeed::default(),
            labels: vec![LabelSetId::default()],
        };
    }
}

impl EpochFeed {
    /// Classes of requests are none of those who watch: they see samples at once. Ops aren't shown to them,
    /// nor what requests have waited for, nor why collections ran.
    fn add(&mut self, mut key: SampleKey, values: Values) {
        if shared_values(values) == SumsValues::default() {
            return;
        }
        key.labels = PackedLabels::of(key.labels).number;
        key.gc = None;
        self.pending.entry(key).or_default().add(values);
    }

    fn add_sums(&mut self, sums: &SampleSums) {
        sums.sums
            .iter()
            .for_each(|(key, values)| self.add(*key, *values));
        let kept = sums.kept.iter();
        kept.for_each(|(_, key, values)| self.add(key, values));
        sums.raw
            .iter()
            .for_each(|it| self.add(it.key(), it.values()));
        self.ended_threads.extend(&sums.ended);
    }

    /// Somebody may be connected who doesn't pull, while threads come and go.
    fn fold_if_many(&mut self) {
        if has_to_fold(self.pending.len(), self.ended_threads.len()) {
            merge_ended_threads(&mut self.pending, &mut self.ended_threads);
        }
    }

    /// How many nodes, and names, it has been told of.
    fn known(&self) -> (usize, usize) {
        (self.nodes.len() - 1 + self.unnamed.len(), self.frames.len())
    }

    fn learn(
        &mut self,
        nodes: &[CapturedNode],
        names: &[Arc<ResolvedFrame>],
        table: &mut SharedSums,
    ) {
        let frame =
            |name: &Arc<ResolvedFrame>| table.frame(&name.name, &name.path, name.first_line);
        self.frames.extend(names.iter().map(frame));
        self.unnamed.extend(nodes);
        while let Some(&node) = self.unnamed.front() {
            let frame = match (node.frame, self.frames.get(node.frame as usize)) {
                (TRUNCATED, _) => FeedFrame::Truncated,
                (FOLDED, _) => FeedFrame::Folded,
                (_, Some(&frame)) => FeedFrame::Frame(frame),
                (_, None) => return,
            };
            self.nodes.add(node.parent, frame, node.line, table);
            self.unnamed.pop_front();
        }
    }

    /// Moves samples to the table whose stacks and labels are known.
    fn flush(&mut self, table: &mut SharedSums, labels: &[LabelSetId]) {
        let nodes = &mut self.nodes;
        self.pending.retain(|key, values| {
            let Some(&labels) = labels.get(key.labels.0 as usize) else {
                return true;
            };
            let Some(node) = nodes.sampled(key.node, table) else {
                return true;
            };
            let key = SampleKey { node, ..*key }.row(labels);
            // Without room they are missing here, and not in the profile.
            let _ = table.add(key, shared_values(*values));
            false
        });
        let ended = self.ended_threads.drain(..);
        ended.for_each(|thread| table.thread_ended(thread));
    }

    /// What is left of `other`, whose nodes are all known, with the numbers of this one's.
    fn take_rest_of(&mut self, other: EpochFeed) {
        for (key, values) in other.pending {
            if let Some(node) = self.nodes.add_from(&other.nodes, key.node) {
                self.add(SampleKey { node, ..key }, values);
            }
        }
    }
}

fn shared_values(values: Values) -> SumsValues {
    SumsValues {
        count: values.count,
        wall_ns: values.times.wall_ns,
        cpu_ns: values.times.cpu_ns,
        blame_ns: values.times.blame_ns,
    }
}

fn lock(table: &SharedTable) -> MutexGuard<'_, SharedSums> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

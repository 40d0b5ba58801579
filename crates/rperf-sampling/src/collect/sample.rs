//! A sample, and the table that sums samples. The sampling side makes samples; the worker alone owns a
//! table.

use crate::accounting::UNATTRIBUTED;
use crate::collect::kept_requests::KeptRequests;
use crate::collect::packed_labels::PackedLabels;
use crate::collect::sample_key::SampleKey;
use crate::{Times, Values};
use rperf_model::{GcCause, LabelSetId, LatencyClass, NodeId, State};
use rperf_vm::RequestNumber;
use rustc_hash::{FxHashMap, FxHashSet};

/// Rows from which on those of ended threads are added up under thread 0.
const FOLD_ROWS: usize = 1 << 14;

/// In place of a node: not a sample, but the news that its thread has ended.
const THREAD_ENDED: NodeId = NodeId(u32::MAX);

/// Likewise, news of its request.
const REQUEST_NEWS: NodeId = NodeId(u32::MAX - 1);

/// What such news have in place of a count: the request is let go, or has waited; or its class, with
/// [`KEPT`] added if its samples are told apart.
const LET_GO: u16 = u16::MAX;
const WAITED: u16 = u16::MAX - 1;
const KEPT: u16 = 1 << 8;

/// What is told of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestNews {
    /// The request has ended, and is of this class: of its samples only remainders follow. `is_kept`:
    /// they are told apart from all others.
    Ended { class: LatencyClass, is_kept: bool },
    /// Its samples are told apart no more.
    LetGo,
    /// The request has waited for the GVL since then, up to now.
    Waited { since_ns: u64 },
}

/// A sample on its way to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time of recording on the monotonic clock, in ns.
    pub time_ns: u64,
    /// What it stands for.
    pub times: Times,
    /// The stack.
    pub node: NodeId,
    /// The thread's seq.
    pub thread: u32,
    /// The label set's number, 0 for none.
    pub labels: LabelSetId,
    /// The request that it is of.
    pub request: RequestNumber,
    /// What the thread was doing.
    pub state: State,
    /// Why the collection ran that it is of, where that is known.
    pub gc: Option<GcCause>,
    /// Ticks that found this stack in a row; 0 for a remainder that was added without
    /// a backtrace.
    pub count: u16,
}

const _: () = assert!(size_of::<Sample>() == 64);

impl Sample {
    /// No sample, but news of what is at `node`.
    fn news(node: NodeId) -> Self {
        Self {
            time_ns: 0,
            times: Times::default(),
            node,
            thread: UNATTRIBUTED,
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            state: State::Running,
            gc: None,
            count: 0,
        }
    }

    /// Says that `thread` has ended: no sample of it follows.
    pub fn thread_ended(thread: u32) -> Self {
        Self {
            thread,
            ..Self::news(THREAD_ENDED)
        }
    }

    /// Tells `news` of `request`.
    pub fn of_request(request: RequestNumber, news: RequestNews) -> Self {
        let (count, time_ns) = match news {
            RequestNews::Ended { class, is_kept } => {
                (class as u16 | (u16::from(is_kept) * KEPT), 0)
            }
            RequestNews::LetGo => (LET_GO, 0),
            RequestNews::Waited { since_ns } => (WAITED, since_ns),
        };
        Self {
            time_ns,
            request,
            count,
            ..Self::news(REQUEST_NEWS)
        }
    }

    /// Whether it only says that its thread has ended.
    pub fn has_ended(&self) -> bool {
        self.node == THREAD_ENDED
    }

    /// What it tells of its request, if it is no sample.
    #[inline]
    pub fn request_news(&self) -> Option<RequestNews> {
        if self.node != REQUEST_NEWS {
            return None;
        }
        match self.count {
            LET_GO => Some(RequestNews::LetGo),
            WAITED => Some(RequestNews::Waited {
                since_ns: self.time_ns,
            }),
            count => {
                let class = LatencyClass::ALL.get(usize::from(count % KEPT));
                class.map(|&class| RequestNews::Ended {
                    class,
                    is_kept: count >= KEPT,
                })
            }
        }
    }

    /// The request that it is told apart by: then it has a class, too.
    #[inline]
    pub fn kept_request(&self) -> Option<RequestNumber> {
        let is_kept =
            self.request != RequestNumber::NONE && PackedLabels::of(self.labels).class.is_some();
        is_kept.then_some(self.request)
    }

    /// What it is summed by.
    pub fn key(&self) -> SampleKey {
        let Self {
            node,
            thread,
            labels,
            state,
            gc,
            ..
        } = *self;
        SampleKey {
            node,
            thread,
            labels,
            state,
            gc,
        }
    }

    /// Its values; those of news are 0.
    #[inline]
    pub fn values(&self) -> Values {
        if self.node == REQUEST_NEWS {
            return Values::default();
        }
        Values {
            count: u64::from(self.count),
            times: self.times,
        }
    }
}

/// What has been collected: sums, or the samples themselves.
#[derive(Debug, Clone, Default)]
pub struct SampleSums {
    /// Sums by key, when samples are aggregated.
    pub sums: FxHashMap<SampleKey, Values>,
    /// Sums of the requests that are told apart from all others; none of samples that aren't aggregated.
    pub kept: KeptRequests,
    /// The samples in the order they were taken, when they are not aggregated.
    pub raw: Vec<Sample>,
    /// Samples that found no room, and the wall and CPU time they stood for.
    pub lost: Values,
    /// Threads that have ended and may have rows of their own.
    pub ended: Vec<u32>,
    /// Ended threads whose rows were added up under thread 0.
    pub folded_threads: u64,
}

/// How samples are collected, and how much room they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumLimits {
    /// Sum samples; otherwise keep each.
    pub aggregate: bool,
    /// Rows, or raw samples, that may be held.
    pub rows: usize,
}

impl SampleSums {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.sums.is_empty()
            && self.kept.is_empty()
            && self.raw.is_empty()
            && self.lost.is_zero()
            && self.ended.is_empty()
            && self.folded_threads == 0
    }

    /// How many rows, or raw samples, there are.
    pub fn rows(&self) -> usize {
        self.sums.len() + self.raw.len()
    }

    /// Takes so many rows out at most. All else comes with the last ones.
    pub fn take_rows(&mut self, rows: usize) -> SampleSums {
        if self.rows() <= rows {
            return std::mem::take(self);
        }
        let keys: Vec<SampleKey> = self.sums.keys().take(rows).copied().collect();
        let rows_taken = keys.iter().filter_map(|key| self.sums.remove_entry(key));
        SampleSums {
            sums: rows_taken.collect(),
            raw: self.raw.split_off(self.raw.len().saturating_sub(rows)),
            ..SampleSums::default()
        }
    }

    /// Takes a buffer of samples in.
    pub fn add(&mut self, samples: &[Sample], limits: SumLimits) {
        for sample in samples {
            self.add_one(sample, limits);
        }
    }

    /// Takes a sample in.
    #[inline]
    pub fn add_one(&mut self, sample: &Sample, limits: SumLimits) {
        if sample.node == THREAD_ENDED {
            self.thread_ended(sample.thread, limits);
        } else if !limits.aggregate {
            self.keep(sample, limits);
        } else if let Some(request) = sample.kept_request() {
            self.kept.add(request, sample.key(), sample.values());
        } else {
            self.add_sum(sample.key(), sample.values(), limits);
        }
    }

    /// `request` is told apart no more.
    pub fn let_go(&mut self, request: RequestNumber, limits: SumLimits) {
        for (key, values) in self.kept.take(request) {
            self.add_sum(key, values, limits);
        }
    }

    /// Adds `values` to a row, if there is room.
    #[inline]
    pub fn add_sum(&mut self, key: SampleKey, values: Values, limits: SumLimits) {
        if let Some(sum) = self.sums.get_mut(&key) {
            sum.add(values);
        } else if self.sums.len() < limits.rows {
            self.sums.insert(key, values);
        } else {
            self.lost.add(values);
        }
    }

    fn keep(&mut self, sample: &Sample, limits: SumLimits) {
        if self.raw.len() < limits.rows {
            self.raw.push(*sample);
        } else {
            self.lost.add(sample.values());
        }
    }

    fn thread_ended(&mut self, thread: u32, limits: SumLimits) {
        if !limits.aggregate {
            return;
        }
        self.ended.push(thread);
        if self.has_to_fold() {
            self.fold_ended_threads();
        }
    }

    /// Adds the rows of ended threads up.
    pub fn fold_ended_threads(&mut self) {
        self.kept.forget_threads(&self.ended);
        self.folded_threads += merge_ended_threads(&mut self.sums, &mut self.ended);
    }

    /// Whether rows of ended threads are to be added up.
    pub fn has_to_fold(&self) -> bool {
        has_to_fold(self.sums.len(), self.ended.len())
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.sums.capacity() * (size_of::<(SampleKey, Values)>() + 1)
            + self.kept.memory()
            + self.raw.capacity() * size_of::<Sample>()
            + self.ended.capacity() * size_of::<u32>()
    }
}

/// Whether rows of `ended` threads are to be added up. Each fold visits every row: there must
/// be as many ended threads as a good part of them.
pub fn has_to_fold(rows: usize, ended: usize) -> bool {
    rows + ended >= FOLD_ROWS && ended >= rows / 16
}

/// Adds the rows of `ended` threads up under thread 0, and empties the list.
/// Returns how many threads had rows.
pub fn merge_ended_threads(sums: &mut FxHashMap<SampleKey, Values>, ended: &mut Vec<u32>) -> u64 {
    let ended: FxHashSet<u32> = ended.drain(..).collect();
    let mut folded = FxHashSet::default();
    let mut moved = Vec::new();
    sums.retain(|key, values| {
        let stays = !ended.contains(&key.thread);
        if !stays {
            moved.push((*key, *values));
        }
        stays
    });
    for (key, values) in moved {
        folded.insert(key.thread);
        let key = SampleKey {
            thread: UNATTRIBUTED,
            ..key
        };
        sums.entry(key).or_default().add(values);
    }
    folded.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::packed_labels::with_class;
    use rperf_model::Mode;

    fn values(count: u64, wall_ns: u64) -> Values {
        let mut times = Times::of(Mode::Wall, wall_ns);
        times.cpu_ns = count;
        Values { count, times }
    }

    fn sample(node: u32, wall_ns: u64) -> Sample {
        Sample {
            time_ns: 0,
            times: values(1, wall_ns).times,
            node: NodeId(node),
            thread: 1,
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            state: State::Running,
            gc: None,
            count: 1,
        }
    }

    #[test]
    fn equal_keys_are_summed_and_what_finds_no_room_is_counted() {
        let limits = SumLimits {
            aggregate: true,
            rows: 2,
        };
        let mut collected = SampleSums::default();
        collected.add(
            &[sample(1, 10), sample(2, 5), sample(1, 7), sample(3, 9)],
            limits,
        );
        assert_eq!(collected.sums.len(), 2);
        assert_eq!(collected.sums[&sample(1, 0).key()], values(2, 17));
        assert_eq!(collected.lost, values(1, 9));
    }

    #[test]
    fn rows_of_ended_threads_are_folded_once_there_are_many() {
        let limits = SumLimits {
            aggregate: true,
            rows: 1 << 20,
        };
        let mut collected = SampleSums::default();
        let threads = 3 * FOLD_ROWS as u32;
        for thread in 1..=threads {
            let sample = Sample {
                thread,
                ..sample(thread % 10, 5)
            };
            let live = Sample {
                thread: u32::MAX,
                ..sample
            };
            collected.add(&[sample, Sample::thread_ended(thread), live], limits);
        }
        assert!(collected.sums.len() < FOLD_ROWS, "{}", collected.sums.len());
        let seqs = |thread| {
            collected
                .sums
                .keys()
                .filter(move |key| key.thread == thread)
        };
        assert_eq!(
            (seqs(UNATTRIBUTED).count(), seqs(u32::MAX).count()),
            (10, 10)
        );
        let total: u64 = collected.sums.values().map(|it| it.times.wall_ns).sum();
        assert_eq!(total, u64::from(threads) * 10);
        assert!(collected.folded_threads as usize >= 2 * FOLD_ROWS - 1);
        assert_eq!(collected.lost, Values::default());
    }

    #[test]
    fn requests_that_are_told_apart_lose_their_ended_threads_with_all_others() {
        let limits = SumLimits {
            aggregate: true,
            rows: 1 << 20,
        };
        let mut collected = SampleSums::default();
        let of_request = |thread, request| Sample {
            thread,
            request: RequestNumber(request),
            labels: with_class(LabelSetId(0), LatencyClass::Tail),
            ..sample(1, 5)
        };
        collected.add(&[of_request(1, 7), of_request(2, 7)], limits);
        collected.add(&[Sample::thread_ended(1)], limits);
        collected.fold_ended_threads();
        let mut threads: Vec<u32> = collected.kept.iter().map(|it| it.1.thread).collect();
        threads.sort_unstable();
        assert_eq!(threads, [UNATTRIBUTED, 2]);
        collected.let_go(RequestNumber(7), limits);
        assert_eq!(collected.sums.len(), 2);
        assert!(collected.kept.is_empty());
    }

    #[test]
    fn raw_samples_keep_their_order_up_to_the_limit() {
        let limits = SumLimits {
            aggregate: false,
            rows: 2,
        };
        let mut collected = SampleSums::default();
        collected.add(&[sample(1, 1), sample(1, 2), sample(1, 3)], limits);
        let walls: Vec<u64> = collected.raw.iter().map(|it| it.times.wall_ns).collect();
        assert_eq!(walls, [1, 2]);
        assert_eq!(collected.lost.times.wall_ns, 3);
    }
}

//! Merging one profile into another: several processes, several runs, several epochs. Called by the
//! engine's worker, by the command and by the Ruby API. Any thread, no I/O.

use crate::fold::{FoldLimits, MERGED};
use crate::{
    Column, Frame, FrameId, LabelSetId, Latencies, Meta, Node, NodeId, Period, Profile, RawSamples,
    Requests, SamplingStats, StringId, Thread, TimeLine, Violation, Weight, WeightKey, WeightTable,
    time_line,
};
use rustc_hash::FxHashMap;

mod levels;
mod since;

use levels::Levels;
pub use since::NotEarlier;

/// Why two profiles can't be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Their values measure different things.
    #[error("profiles of different values can't be merged: one has {ours}; the other has {theirs}")]
    Schema {
        /// The types of the profile that takes the other in.
        ours: String,
        /// The types of the other.
        theirs: String,
    },
    /// The other profile breaks the rules of [`Profile::check`].
    #[error("the profile to be merged is not valid: {0}")]
    Invalid(Violation),
    /// There are no more numbers for threads.
    #[error("the profiles have too many threads to be merged")]
    TooManyThreads,
}

impl Profile {
    /// Adds everything in `other` to this profile.
    ///
    /// Weights of equal stacks, threads, labels and states are summed, counters too. Columns are matched by
    /// name and unit, and keep our order and default. The threads of `other` are taken as new ones, with seqs
    /// after ours; of thread 0 there is only one. The times of the runs are united, and time lines stay as
    /// they are, up to a limit; latencies of a method are added, requests of an endpoint, and what tests and
    /// collections took. Raw samples stay only if both have them, since they must add up to the weights.
    /// Levels, such as objects in use, are added up if they are of different processes; of two looks at the
    /// same ones the later one's stay; if only some are the same, there are none, and a note says so. If
    /// there are more nodes or rows than [`MERGED`] says, the lightest stacks are folded.
    ///
    /// This profile is unchanged if there is an error.
    pub fn merge(&mut self, other: &Profile) -> Result<(), MergeError> {
        self.merge_within(MERGED, other)
    }

    fn merge_within(&mut self, limits: FoldLimits, other: &Profile) -> Result<(), MergeError> {
        let Some(columns) = self.schema.matching(&other.schema) else {
            let (ours, theirs) = (self.schema.to_string(), other.schema.to_string());
            return Err(MergeError::Schema { ours, theirs });
        };
        if let Err(mut violations) = other.check() {
            return Err(MergeError::Invalid(violations.swap_remove(0)));
        }
        let levels = Levels::of(self, other);
        let seqs = self.new_seqs(&other.threads)?;
        let ids = Ids::intern(self, other, seqs);
        let shifts = self.meta.unite(&other.meta);
        let without_levels;
        let their_weights = match levels {
            Levels::Both => &other.weights,
            Levels::Ours | Levels::None => {
                if levels == Levels::None {
                    self.leave_levels_out();
                }
                let mut earlier = other.clone();
                earlier.remove_levels();
                without_levels = earlier.weights;
                &without_levels
            }
            Levels::Theirs => {
                self.remove_levels();
                &other.weights
            }
        };

        let threads = other.threads.iter().filter(|thread| thread.seq > 0);
        self.threads.extend(threads.map(|thread| Thread {
            seq: ids.seq(thread.seq),
            name: ids.string(thread.name),
        }));
        let mut row = MatchedRow::new(columns);
        let mut weights = WeightTable::from(&self.weights);
        for weight in their_weights.iter() {
            weights.add(ids.key(weight.key), row.of(weight));
        }
        self.weights = weights.into_weights();
        self.raw_samples = match (self.raw_samples.take(), &other.raw_samples) {
            (Some(ours), Some(theirs)) => Some(merge_raw(ours, theirs, &ids, &mut row, &shifts)),
            _ => None,
        };
        let lines = other.time_lines.iter().cloned();
        self.time_lines
            .extend(lines.map(|line| ids.time_line(line)));
        time_line::limit(&mut self.time_lines);
        self.merge_latencies(&other.latencies);
        self.suite.merge(&other.suite);
        self.ops.merge(&other.ops);
        self.collections.merge(&other.collections);
        self.merge_requests(&other.requests);
        self.label_slowest_alone();
        self.fold(limits);
        Ok(())
    }

    fn merge_latencies(&mut self, others: &[Latencies]) {
        let ours = self.latencies.iter().enumerate();
        let known: FxHashMap<(String, String), usize> = ours
            .map(|(place, it)| ((it.name.clone(), it.path.clone()), place))
            .collect();
        for other in others {
            match known.get(&(other.name.clone(), other.path.clone())) {
                Some(&place) => self.latencies[place].durations.merge(&other.durations),
                None if self.latencies.len() < Latencies::MOST => {
                    self.latencies.push(other.clone())
                }
                None => {}
            }
        }
    }

    fn merge_requests(&mut self, others: &[Requests]) {
        let ours = self.requests.iter().enumerate();
        let known: FxHashMap<(String, String), usize> = ours
            .map(|(place, it)| ((it.key.clone(), it.name.clone()), place))
            .collect();
        for other in others {
            match known.get(&(other.key.clone(), other.name.clone())) {
                Some(&place) => self.requests[place].merge(other),
                None if self.requests.len() < Requests::MOST => self.requests.push(other.clone()),
                None => {}
            }
        }
    }

    fn new_seqs(&self, threads: &[Thread]) -> Result<FxHashMap<u32, u32>, MergeError> {
        let mut last = self.threads.iter().map(|row| row.seq).max().unwrap_or(0);
        let mut seqs = FxHashMap::default();
        for thread in threads.iter().filter(|thread| thread.seq > 0) {
            last = last.checked_add(1).ok_or(MergeError::TooManyThreads)?;
            seqs.insert(thread.seq, last);
        }
        Ok(seqs)
    }
}

/// The ids that things of the other profile have in ours.
struct Ids {
    strings: Vec<StringId>,
    nodes: Vec<NodeId>,
    label_sets: Vec<LabelSetId>,
    seqs: FxHashMap<u32, u32>,
}

impl Ids {
    /// Adds the tables of `other` to those of `profile`. `other` has been checked,
    /// so its ids are those of its tables and parents come first.
    fn intern(profile: &mut Profile, other: &Profile, seqs: FxHashMap<u32, u32>) -> Self {
        let strings: Vec<StringId> = other
            .strings
            .iter()
            .map(|text| profile.strings.intern(text))
            .collect();
        let string = |id: StringId| strings[id.0 as usize];

        let frames: Vec<FrameId> = other
            .frames
            .iter()
            .map(|(_, frame)| {
                profile.frames.intern(Frame {
                    name: string(frame.name),
                    path: string(frame.path),
                    first_line: frame.first_line,
                })
            })
            .collect();

        let mut nodes = vec![NodeId::ROOT];
        for (_, node) in other.tree.iter() {
            nodes.push(profile.tree.intern(Node {
                parent: nodes[node.parent.0 as usize],
                frame: frames[node.frame.0 as usize],
                line: node.line,
            }));
        }

        let label_sets = other
            .label_sets
            .iter()
            .map(|set| {
                let set = set.iter().map(|&(key, value)| (string(key), string(value)));
                profile.label_sets.intern(set.collect())
            })
            .collect();
        Self {
            strings,
            nodes,
            label_sets,
            seqs,
        }
    }

    fn string(&self, id: StringId) -> StringId {
        self.strings[id.0 as usize]
    }

    fn seq(&self, seq: u32) -> u32 {
        // Thread 0 is the same in all profiles and needs no row.
        self.seqs.get(&seq).copied().unwrap_or(0)
    }

    fn time_line(&self, mut line: TimeLine) -> TimeLine {
        for span in &mut line.spans {
            span.thread = self.seq(span.thread);
        }
        line
    }

    fn key(&self, key: WeightKey) -> WeightKey {
        WeightKey {
            node: self.nodes[key.node.0 as usize],
            thread: self.seq(key.thread),
            labels: self.label_sets[key.labels.0 as usize],
            state: key.state,
        }
    }
}

/// A row of the other profile, its values in the order of our columns.
struct MatchedRow {
    /// For each of our columns the other's.
    columns: Vec<Column>,
    values: Vec<i64>,
}

impl MatchedRow {
    fn new(columns: Vec<Column>) -> Self {
        let values = Vec::with_capacity(columns.len());
        Self { columns, values }
    }

    fn of(&mut self, weight: Weight<'_>) -> &[i64] {
        self.values.clear();
        let values = self.columns.iter().map(|&column| weight.value(column));
        self.values.extend(values);
        &self.values
    }
}

fn merge_raw(
    mut ours: RawSamples,
    theirs: &RawSamples,
    ids: &Ids,
    row: &mut MatchedRow,
    shifts: &Shifts,
) -> RawSamples {
    for time_ns in &mut ours.times_ns {
        *time_ns = time_ns.saturating_add(shifts.ours_ns);
    }
    for (time_ns, weight) in theirs.iter() {
        let time_ns = time_ns.saturating_add(shifts.theirs_ns);
        ours.push(time_ns, ids.key(weight.key), row.of(weight));
    }
    ours.sort();
    ours
}

/// How much later each profile started than both together, in ns.
struct Shifts {
    ours_ns: u64,
    theirs_ns: u64,
}

impl Meta {
    /// Merges the facts about the other run. Unknown start times (0) don't count.
    fn unite(&mut self, other: &Meta) -> Shifts {
        let mut shifts = Shifts {
            ours_ns: 0,
            theirs_ns: 0,
        };
        if self.start_time_ns == 0 || other.start_time_ns == 0 {
            self.start_time_ns = self.start_time_ns.max(other.start_time_ns);
            self.duration_ns = self.duration_ns.max(other.duration_ns);
        } else {
            let start = self.start_time_ns.min(other.start_time_ns);
            let end = self.end_time_ns().max(other.end_time_ns());
            shifts.ours_ns = self.start_time_ns - start;
            shifts.theirs_ns = other.start_time_ns - start;
            self.start_time_ns = start;
            self.duration_ns = end - start;
        }
        self.period = self.common_period(other);
        self.frequency = self.frequency.max(other.frequency);
        if self.program.is_empty() {
            self.program.clone_from(&other.program);
        }
        add_new(&mut self.notes, &other.notes);
        add_new(&mut self.missing, &other.missing);
        for root in &other.roots {
            self.add_root(root);
        }
        for directory in &other.rperf_directories {
            self.add_rperf_directory(directory);
        }
        self.counters.add(&other.counters);
        shifts
    }

    /// The longer one of two periods of one type, as in pprof. Where only one profile tells what
    /// its samples stand for, that is kept; where they differ in kind, nothing can be said of both.
    fn common_period(&self, other: &Meta) -> Option<Period> {
        match (&self.period, &other.period) {
            (Some(ours), Some(theirs)) if ours.value_type == theirs.value_type => {
                let is_ours = ours.value >= theirs.value;
                Some(if is_ours {
                    ours.clone()
                } else {
                    theirs.clone()
                })
            }
            (None, Some(theirs)) if self.frequency == 0 => Some(theirs.clone()),
            (Some(ours), None) if other.frequency == 0 => Some(ours.clone()),
            _ => None,
        }
    }

    pub(crate) fn end_time_ns(&self) -> u64 {
        self.start_time_ns.saturating_add(self.duration_ns)
    }
}

/// Adds what isn't there yet.
fn add_new<T: Clone + PartialEq>(known: &mut Vec<T>, more: &[T]) {
    for it in more {
        if !known.contains(it) {
            known.push(it.clone());
        }
    }
}

impl SamplingStats {
    /// Adds `other`, saturating; of intervals the longer one stays.
    pub fn add(&mut self, other: &SamplingStats) {
        let SamplingStats {
            trigger_count,
            sampling_count,
            sampling_time_ns,
            detected_thread_count,
            dropped_samples,
            dropped_ns,
            truncated_samples,
            folded_samples,
            folded_ns,
            unlabelled_samples,
            tick_stacks,
            safepoint_stacks,
            safepoint_calls,
            unreadable_stacks,
            hidden_frames,
            known_waits,
            interval_ns,
            off_gvl_interval_ns,
        } = self;
        for (ours, theirs) in [
            (trigger_count, other.trigger_count),
            (sampling_count, other.sampling_count),
            (sampling_time_ns, other.sampling_time_ns),
            (detected_thread_count, other.detected_thread_count),
            (dropped_samples, other.dropped_samples),
            (dropped_ns, other.dropped_ns),
            (truncated_samples, other.truncated_samples),
            (folded_samples, other.folded_samples),
            (folded_ns, other.folded_ns),
            (unlabelled_samples, other.unlabelled_samples),
            (tick_stacks, other.tick_stacks),
            (safepoint_stacks, other.safepoint_stacks),
            (safepoint_calls, other.safepoint_calls),
            (unreadable_stacks, other.unreadable_stacks),
            (hidden_frames, other.hidden_frames),
            (known_waits, other.known_waits),
        ] {
            *ours = ours.saturating_add(theirs);
        }
        for (ours, theirs) in [
            (interval_ns, other.interval_ns),
            (off_gvl_interval_ns, other.off_gvl_interval_ns),
        ] {
            *ours = theirs.max(*ours);
        }
    }
}

#[cfg(test)]
mod tests;

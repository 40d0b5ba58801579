//! Merging one profile into another: several processes, several runs, several
//! epochs. Any thread, no I/O.

use crate::{
    Counters, Frame, FrameId, LabelSetId, Meta, Node, NodeId, Profile, RawSample, StringId, Thread,
    Violation, Weight, WeightTable,
};
use rustc_hash::FxHashMap;

/// Why two profiles can't be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// Their weights measure different things.
    #[error(
        "a {ours} profile and a {theirs} profile can't be merged: their weights differ in kind"
    )]
    Mode {
        /// The mode of the profile that was to take the other in.
        ours: &'static str,
        /// The other's mode.
        theirs: &'static str,
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
    /// Weights of equal stacks, threads, labels and states are summed, counters
    /// too. The threads of `other` are taken as new ones, with seqs after ours; of
    /// thread 0 there is only one. The time spans are united. Raw samples stay
    /// only if both have them, since they must add up to the weights.
    ///
    /// This profile is unchanged if there is an error.
    pub fn merge(&mut self, other: &Profile) -> Result<(), MergeError> {
        let (ours, theirs) = (self.meta.mode.name(), other.meta.mode.name());
        if ours != theirs {
            return Err(MergeError::Mode { ours, theirs });
        }
        if let Err(mut violations) = other.check() {
            return Err(MergeError::Invalid(violations.swap_remove(0)));
        }
        let seqs = self.new_seqs(&other.threads)?;
        let ids = Ids::intern(self, other, seqs);
        let shifts = self.meta.unite(&other.meta);

        let threads = other.threads.iter().filter(|thread| thread.seq > 0);
        self.threads.extend(threads.map(|thread| Thread {
            seq: ids.seq(thread.seq),
            name: ids.string(thread.name),
        }));
        let mut weights = WeightTable::from_iter(std::mem::take(&mut self.weights));
        weights.extend(other.weights.iter().map(|weight| ids.weight(weight)));
        self.weights = weights.into_rows();
        self.raw_samples = match (self.raw_samples.take(), &other.raw_samples) {
            (Some(ours), Some(theirs)) => Some(merge_raw(ours, theirs, &ids, shifts)),
            _ => None,
        };
        Ok(())
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

    fn weight(&self, weight: &Weight) -> Weight {
        Weight {
            node: self.nodes[weight.node.0 as usize],
            thread: self.seq(weight.thread),
            labels: self.label_sets[weight.labels.0 as usize],
            ..*weight
        }
    }
}

fn merge_raw(
    mut ours: Vec<RawSample>,
    theirs: &[RawSample],
    ids: &Ids,
    shifts: Shifts,
) -> Vec<RawSample> {
    for sample in &mut ours {
        sample.time_ns = sample.time_ns.saturating_add(shifts.ours_ns);
    }
    ours.extend(theirs.iter().map(|sample| RawSample {
        time_ns: sample.time_ns.saturating_add(shifts.theirs_ns),
        weight: ids.weight(&sample.weight),
    }));
    ours.sort_by_key(|sample| sample.time_ns);
    ours
}

/// How much later each profile started than both together, in ns.
struct Shifts {
    ours_ns: u64,
    theirs_ns: u64,
}

impl Meta {
    /// Takes in what `other` says of its run. Unknown start times (0) don't count.
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
        self.frequency = self.frequency.max(other.frequency);
        if self.program.is_empty() {
            self.program.clone_from(&other.program);
        }
        for comment in &other.comments {
            if !self.comments.contains(comment) {
                self.comments.push(comment.clone());
            }
        }
        self.counters.add(&other.counters);
        shifts
    }

    fn end_time_ns(&self) -> u64 {
        self.start_time_ns.saturating_add(self.duration_ns)
    }
}

impl Counters {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &Counters) {
        let Counters {
            trigger_count,
            sampling_count,
            sampling_time_ns,
            detected_thread_count,
            dropped_samples,
            dropped_ns,
            truncated_samples,
            unlabelled_samples,
            tick_stacks,
            safepoint_stacks,
            safepoint_calls,
            unreadable_stacks,
            hidden_frames,
        } = self;
        for (ours, theirs) in [
            (trigger_count, other.trigger_count),
            (sampling_count, other.sampling_count),
            (sampling_time_ns, other.sampling_time_ns),
            (detected_thread_count, other.detected_thread_count),
            (dropped_samples, other.dropped_samples),
            (dropped_ns, other.dropped_ns),
            (truncated_samples, other.truncated_samples),
            (unlabelled_samples, other.unlabelled_samples),
            (tick_stacks, other.tick_stacks),
            (safepoint_stacks, other.safepoint_stacks),
            (safepoint_calls, other.safepoint_calls),
            (unreadable_stacks, other.unreadable_stacks),
            (hidden_frames, other.hidden_frames),
        ] {
            *ours = ours.saturating_add(theirs);
        }
    }
}

#[cfg(test)]
mod tests;

//! The validity check: what must hold in every profile. Called by tests for each profile that they
//! make, and before profiles are merged. Any thread, no I/O.

use crate::{NodeId, Profile, StringId, WeightKey, WeightTable};
use rustc_hash::FxHashSet;
use std::ops::RangeInclusive;

/// The sampling frequencies that make sense, in Hz.
pub const FREQUENCIES: RangeInclusive<u32> = 1..=10_000;

/// The frequencies of sessions that clients of a port begin, in samples per second.
pub const ASKED_FREQUENCIES: RangeInclusive<u32> = 1..=1000;

/// More violations than this tell nothing new.
const MAX_VIOLATIONS: usize = 100;

/// Something in a profile that must not be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The frequency is out of range.
    #[error("the frequency is {0} Hz, more than {max}", max = FREQUENCIES.end())]
    Frequency(u32),
    /// Rows have more or fewer values than there are value types.
    #[error("{rows} have {found} values each, but there are {wanted} value types")]
    Width {
        /// Which rows.
        rows: &'static str,
        /// How many values they have.
        found: usize,
        /// How many they should have.
        wanted: usize,
    },
    /// There are more or fewer times than raw samples.
    #[error("there are {samples} raw samples, but {times} times")]
    RawSampleTimes {
        /// How many samples.
        samples: usize,
        /// How many times.
        times: usize,
    },
    /// Something names a string that is not there.
    #[error("{owner} names string {id}, which is not in the table")]
    UnknownString {
        /// The item that names it.
        owner: String,
        /// The string's id.
        id: u32,
    },
    /// A node names a frame that is not there.
    #[error("node {node} names frame {frame}, which is not in the table")]
    UnknownFrame {
        /// The node's id.
        node: u32,
        /// The frame's id.
        frame: u32,
    },
    /// A node comes before its parent.
    #[error("node {node} comes before its parent {parent}")]
    ParentAfterChild {
        /// The node's id.
        node: u32,
        /// Its parent's id.
        parent: u32,
    },
    /// Two threads have the same number.
    #[error("thread {0} is there twice")]
    DuplicateThread(u32),
    /// A label set has a key twice.
    #[error("label set {set} has the key {key:?} twice")]
    DuplicateLabel {
        /// The set's id.
        set: usize,
        /// The key.
        key: String,
    },
    /// A row names a node that is not there.
    #[error("{row} names node {node}, which is not in the tree")]
    UnknownNode {
        /// Which row.
        row: Row,
        /// The node's id.
        node: u32,
    },
    /// A row names a thread that is not there.
    #[error("{row} names thread {thread}, which is not in the table")]
    UnknownThread {
        /// Which row.
        row: Row,
        /// The thread's seq.
        thread: u32,
    },
    /// A row names a label set that is not there.
    #[error("{row} names label set {labels}, which is not in the table")]
    UnknownLabels {
        /// Which row.
        row: Row,
        /// The set's id.
        labels: u32,
    },
    /// Two weights belong to the same stack, thread, labels and state.
    #[error("{0} has the stack, thread, labels and state of an earlier one")]
    DuplicateWeight(Row),
    /// A weight has no value.
    #[error("all values of {0} are 0")]
    ZeroWeight(Row),
    /// A raw sample comes after one that was taken later.
    #[error("{0} was taken before the one in front of it")]
    RawSampleOrder(Row),
    /// The raw samples don't add up to a weight.
    #[error("the raw samples of node {node}, thread {thread} don't add up to its weight")]
    RawSampleSum {
        /// The node's id.
        node: u32,
        /// The thread's seq.
        thread: u32,
    },
}

/// A row of a profile's weights or raw samples, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// A row of the weights.
    Weight(usize),
    /// A row of the raw samples.
    RawSample(usize),
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Row::Weight(row) => write!(f, "weight {row}"),
            Row::RawSample(row) => write!(f, "raw sample {row}"),
        }
    }
}

impl Profile {
    /// Whether everything in the profile hangs together; else what does not, with
    /// the first hundred findings.
    pub fn check(&self) -> Result<(), Vec<Violation>> {
        let mut check = Check {
            profile: self,
            found: Vec::new(),
        };
        check.meta();
        check.tables();
        check.labels();
        let threads = check.threads();
        check.weights(&threads);
        check.raw_samples(&threads);
        if check.found.is_empty() {
            Ok(())
        } else {
            Err(check.found)
        }
    }
}

struct Check<'a> {
    profile: &'a Profile,
    found: Vec<Violation>,
}

impl Check<'_> {
    fn report(&mut self, violation: Violation) {
        if self.found.len() < MAX_VIOLATIONS {
            self.found.push(violation);
        }
    }

    fn string(&mut self, id: StringId, owner: impl FnOnce() -> String) {
        if id.0 as usize >= self.profile.strings.len() {
            let owner = owner();
            self.report(Violation::UnknownString { owner, id: id.0 });
        }
    }

    fn meta(&mut self) {
        let frequency = self.profile.meta.frequency;
        if frequency > *FREQUENCIES.end() {
            self.report(Violation::Frequency(frequency));
        }
    }

    fn width(&mut self, rows: &'static str, found: usize) {
        let wanted = self.profile.schema.len();
        if found != wanted {
            self.report(Violation::Width {
                rows,
                found,
                wanted,
            });
        }
    }

    fn tables(&mut self) {
        for (id, frame) in self.profile.frames.iter() {
            for string in [frame.name, frame.path] {
                self.string(string, || format!("frame {}", id.0));
            }
        }
        for (id, node) in self.profile.tree.iter() {
            if node.parent >= id {
                self.report(Violation::ParentAfterChild {
                    node: id.0,
                    parent: node.parent.0,
                });
            }
            if self.profile.frames.get(node.frame).is_none() {
                self.report(Violation::UnknownFrame {
                    node: id.0,
                    frame: node.frame.0,
                });
            }
        }
    }

    fn labels(&mut self) {
        for (set, pairs) in self.profile.label_sets.iter().enumerate() {
            let mut keys = FxHashSet::default();
            for &(key, value) in pairs {
                for string in [key, value] {
                    self.string(string, || format!("label set {set}"));
                }
                if !keys.insert(key) {
                    let key = self.profile.strings.get(key).to_string();
                    self.report(Violation::DuplicateLabel { set, key });
                }
            }
        }
    }

    /// Returns the seqs that rows may have.
    fn threads(&mut self) -> FxHashSet<u32> {
        let mut seqs = FxHashSet::default();
        for thread in &self.profile.threads {
            self.string(thread.name, || format!("thread {}", thread.seq));
            if !seqs.insert(thread.seq) {
                self.report(Violation::DuplicateThread(thread.seq));
            }
        }
        // Needs no row: time of threads that ended before any stack was taken.
        seqs.insert(0);
        seqs
    }

    fn weights(&mut self, threads: &FxHashSet<u32>) {
        self.width("weights", self.profile.weights.width());
        let mut keys: FxHashSet<WeightKey> = FxHashSet::default();
        for (row, weight) in self.profile.weights.iter().enumerate() {
            let row = Row::Weight(row);
            self.ids(row, weight.key, threads);
            if !keys.insert(weight.key) {
                self.report(Violation::DuplicateWeight(row));
            }
            if weight.values.iter().all(|value| *value == 0) {
                self.report(Violation::ZeroWeight(row));
            }
        }
    }

    fn ids(&mut self, row: Row, key: WeightKey, threads: &FxHashSet<u32>) {
        let NodeId(node) = key.node;
        if node as usize > self.profile.tree.len() {
            self.report(Violation::UnknownNode { row, node });
        }
        let thread = key.thread;
        if !threads.contains(&thread) {
            self.report(Violation::UnknownThread { row, thread });
        }
        let labels = key.labels.0;
        if labels as usize >= self.profile.label_sets.len() {
            self.report(Violation::UnknownLabels { row, labels });
        }
    }

    fn raw_samples(&mut self, threads: &FxHashSet<u32>) {
        let Some(samples) = &self.profile.raw_samples else {
            return;
        };
        self.width("raw samples", samples.weights.width());
        let (rows, times) = (samples.weights.len(), samples.times_ns.len());
        if rows != times {
            let samples = rows;
            self.report(Violation::RawSampleTimes { samples, times });
        }
        let mut last_time_ns = 0;
        for (row, (time_ns, weight)) in samples.iter().enumerate() {
            let row = Row::RawSample(row);
            self.ids(row, weight.key, threads);
            if time_ns < last_time_ns {
                self.report(Violation::RawSampleOrder(row));
            }
            last_time_ns = time_ns;
        }
        let sums = WeightTable::from(&samples.weights);
        let weights = WeightTable::from(&self.profile.weights);
        for (one, other) in [(&weights, &sums), (&sums, &weights)] {
            let rows = one.clone().into_weights();
            for row in rows
                .iter()
                .filter(|row| other.get(&row.key) != Some(row.values))
            {
                let violation = Violation::RawSampleSum {
                    node: row.key.node.0,
                    thread: row.key.thread,
                };
                if !self.found.contains(&violation) {
                    self.report(violation);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

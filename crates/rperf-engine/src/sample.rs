//! One sample, and the table that sums samples. The sampling side makes samples;
//! the worker alone owns a table.

use rperf_model::{NodeId, State, Values};
use rustc_hash::FxHashMap;

/// A sample on its way to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time of recording on the monotonic clock, in ns.
    pub time_ns: u64,
    /// Wall time in ns.
    pub wall_ns: u64,
    /// CPU time in ns.
    pub cpu_ns: u64,
    /// The stack.
    pub node: NodeId,
    /// The thread's seq.
    pub thread: u32,
    /// The label set's number, 0 for none.
    pub labels: u32,
    /// What the thread was doing.
    pub state: State,
    /// 1, or 0 for a remainder that was added without a backtrace.
    pub count: u8,
}

/// What samples are summed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SampleKey {
    /// The stack.
    pub node: NodeId,
    /// The thread's seq.
    pub thread: u32,
    /// The label set's number.
    pub labels: u32,
    /// What the thread was doing.
    pub state: State,
}

impl Sample {
    /// What it is summed by.
    pub fn key(&self) -> SampleKey {
        let Self {
            node,
            thread,
            labels,
            state,
            ..
        } = *self;
        SampleKey {
            node,
            thread,
            labels,
            state,
        }
    }

    /// Its values.
    pub fn values(&self) -> Values {
        Values {
            count: u64::from(self.count),
            wall_ns: self.wall_ns,
            cpu_ns: self.cpu_ns,
        }
    }
}

/// What has been collected: sums, or the samples themselves.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Sums by key, when samples are aggregated.
    pub sums: FxHashMap<SampleKey, Values>,
    /// The samples in the order they were taken, when they are not.
    pub raw: Vec<Sample>,
    /// Samples that found no room, and the wall and CPU time they stood for.
    pub lost: Values,
}

/// How samples are collected, and how much room they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectedLimits {
    /// Sum samples; otherwise keep each.
    pub aggregate: bool,
    /// Rows, or raw samples, that may be held.
    pub rows: usize,
}

impl Collected {
    /// Takes a buffer of samples in.
    pub fn add(&mut self, samples: &[Sample], limits: CollectedLimits) {
        if !limits.aggregate {
            let room = limits
                .rows
                .saturating_sub(self.raw.len())
                .min(samples.len());
            self.raw.extend_from_slice(&samples[..room]);
            samples[room..]
                .iter()
                .for_each(|sample| self.lost.add(sample.values()));
            return;
        }
        for sample in samples {
            if let Some(sum) = self.sums.get_mut(&sample.key()) {
                sum.add(sample.values());
            } else if self.sums.len() < limits.rows {
                self.sums.insert(sample.key(), sample.values());
            } else {
                self.lost.add(sample.values());
            }
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.sums.capacity() * (size_of::<(SampleKey, Values)>() + 1)
            + self.raw.capacity() * size_of::<Sample>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(node: u32, wall_ns: u64) -> Sample {
        Sample {
            time_ns: 0,
            wall_ns,
            cpu_ns: 1,
            node: NodeId(node),
            thread: 1,
            labels: 0,
            state: State::Running,
            count: 1,
        }
    }

    #[test]
    fn equal_keys_are_summed_and_what_finds_no_room_is_counted() {
        let limits = CollectedLimits {
            aggregate: true,
            rows: 2,
        };
        let mut collected = Collected::default();
        collected.add(
            &[sample(1, 10), sample(2, 5), sample(1, 7), sample(3, 9)],
            limits,
        );
        assert_eq!(collected.sums.len(), 2);
        let first = collected.sums[&sample(1, 0).key()];
        assert_eq!(
            first,
            Values {
                count: 2,
                wall_ns: 17,
                cpu_ns: 2
            }
        );
        assert_eq!(
            collected.lost,
            Values {
                count: 1,
                wall_ns: 9,
                cpu_ns: 1
            }
        );
    }

    #[test]
    fn raw_samples_keep_their_order_up_to_the_limit() {
        let limits = CollectedLimits {
            aggregate: false,
            rows: 2,
        };
        let mut collected = Collected::default();
        collected.add(&[sample(1, 1), sample(1, 2), sample(1, 3)], limits);
        let walls: Vec<u64> = collected.raw.iter().map(|sample| sample.wall_ns).collect();
        assert_eq!(walls, [1, 2]);
        assert_eq!(collected.lost.wall_ns, 3);
    }
}

//! What is kept for a thread that is traced. Under the GVL; what has been counted can go on to
//! another thread, which makes the profile without it.

use crate::tree::counts::Counts;
use crate::tree::state_times::StateTimes;
use rperf_model::LabelSetId;
use rperf_model::Order;
use rperf_vm::NotedName;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A thread.
#[derive(Debug)]
pub(crate) struct TracedThread {
    /// What is counted under its present labels.
    pub(crate) sums: ThreadSums,
    pub(crate) labels: LabelSetId,
    /// What has been counted under others.
    pub(crate) put_away: FxHashMap<LabelSetId, ThreadSums>,
    /// The fiber that it runs, or ran when it gave the GVL up.
    pub(crate) fiber: usize,
    /// Its own fiber, if that is known and no switch to it has told its object.
    pub(crate) own_fiber: Option<usize>,
    /// Since when it has been without the GVL; `None` while it runs.
    pub(crate) away_since: Option<u64>,
    /// Its CPU clock as it gave the GVL up, in ns, if CPU time is measured.
    pub(crate) away_cpu_ns: Option<u64>,
    pub(crate) noted_name: NotedName,
    pub(crate) name: Option<Arc<str>>,
}

/// What has been counted for a thread under one label set.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadSums {
    pub(crate) counts: Counts,
    pub(crate) states: StateTimes,
    /// By node, in ns: running time that the system took away.
    pub(crate) stolen: FxHashMap<u32, u64>,
    /// CPU time in other states than running, in ns.
    pub(crate) used: StateTimes,
}

impl ThreadSums {
    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.counts.memory()
            + self.states.memory()
            + self.stolen.capacity() * (size_of::<(u32, u64)>() + 1)
            + self.used.memory()
    }
}

impl TracedThread {
    /// A thread without the GVL, whose own stack is `fiber`.
    pub(crate) fn new(fiber: usize, now: u64) -> Self {
        Self {
            sums: ThreadSums::default(),
            labels: LabelSetId::default(),
            put_away: FxHashMap::default(),
            fiber,
            own_fiber: None,
            away_since: Some(now),
            away_cpu_ns: None,
            noted_name: NotedName::default(),
            name: None,
        }
    }

    /// All that has been counted.
    pub(crate) fn counted(&self) -> CountedThread {
        let present = (self.labels, self.sums.clone());
        let others = self.put_away.iter();
        let others = others.map(|(labels, sums)| (*labels, sums.clone()));
        CountedThread {
            name: self.name.clone(),
            sums: sorted(std::iter::once(present).chain(others).collect()),
        }
    }

    /// All that was counted, for a thread that is counted no more.
    pub(crate) fn into_counted(self) -> CountedThread {
        let present = (self.labels, self.sums);
        CountedThread {
            name: self.name,
            sums: sorted(std::iter::once(present).chain(self.put_away).collect()),
        }
    }

    /// Bytes held by what has been counted.
    pub(crate) fn memory(&self) -> usize {
        let others = self.put_away.values().map(ThreadSums::memory);
        self.sums.memory() + others.sum::<usize>()
    }
}

/// What has been counted for a thread that had this name last.
#[derive(Debug)]
pub(crate) struct CountedThread {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) sums: LabelledSums,
}

/// Sums by label set, in the order of the sets.
type LabelledSums = Vec<(LabelSetId, ThreadSums)>;

fn sorted(mut sums: LabelledSums) -> LabelledSums {
    sums.order_by_key(|(labels, _)| *labels);
    sums
}

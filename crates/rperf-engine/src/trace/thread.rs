//! What is kept for a thread that is traced. Under the GVL.

use super::counts::{Count, Counts};
use super::cpu_times::ThreadCpu;
use super::state_times::StateTimes;
use rperf_model::State;
use rustc_hash::FxHashMap;

/// A thread.
#[derive(Debug)]
pub(super) struct TracedThread {
    pub(super) counts: Counts,
    pub(super) states: StateTimes,
    pub(super) cpu: ThreadCpu,
    /// The fiber that it runs, or ran when it gave the GVL up.
    pub(super) fiber: usize,
    /// Since when it has been without the GVL; `None` while it runs.
    pub(super) away_since: Option<u64>,
}

/// What has been counted for a thread, in the order of the nodes.
#[derive(Debug, Default)]
pub(super) struct ThreadNumbers {
    pub(super) counts: Vec<(u32, Count)>,
    pub(super) states: Vec<(u32, State, u64)>,
    /// By node, in ns: running time that the system took away.
    pub(super) stolen: FxHashMap<u32, u64>,
    /// CPU time in other states than running, in ns.
    pub(super) used: Vec<(u32, State, u64)>,
}

impl TracedThread {
    /// What has been counted.
    pub(super) fn numbers(&self) -> ThreadNumbers {
        ThreadNumbers {
            counts: self.counts.iter().collect(),
            states: self.states.sorted(),
            stolen: self.cpu.stolen.clone(),
            used: self.cpu.used.sorted(),
        }
    }

    /// Lets go of what has been counted.
    pub(super) fn clear(&mut self) {
        (self.counts, self.states) = Default::default();
        self.cpu.clear();
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.counts.memory() + self.states.memory() + self.cpu.memory()
    }

    /// A thread without the GVL, whose own stack is `fiber`.
    pub(super) fn new(fiber: usize, now: u64) -> Self {
        Self {
            counts: Counts::default(),
            states: StateTimes::default(),
            cpu: ThreadCpu::default(),
            fiber,
            away_since: Some(now),
        }
    }
}

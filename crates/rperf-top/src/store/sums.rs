//! The times of all stacks, for one question: which span, which labels, which process. One pass over
//! the rows and one over the nodes, whatever is shown of it.

use super::{Row, State, Store};
use std::sync::Arc;

/// The span of time that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// The last interval, as a rate: ns per second.
    #[default]
    Rate,
    /// Since the program is watched.
    Total,
    /// Since the mark.
    SinceMark,
}

/// Times by state, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Running.
    pub run: u64,
    /// Ready to run, without the GVL.
    pub wait: u64,
    /// Blocked.
    pub blocked: u64,
    /// Collecting garbage.
    pub gc: u64,
}

impl Times {
    /// Adds `ns` in this state.
    pub fn add_state(&mut self, state: State, ns: u64) {
        let time = match state {
            State::Running => &mut self.run,
            State::GvlWait => &mut self.wait,
            State::GvlBlocked => &mut self.blocked,
            State::GcMarking | State::GcSweeping => &mut self.gc,
        };
        *time = time.saturating_add(ns);
    }

    /// Adds `other`.
    pub fn add(&mut self, other: Times) {
        self.run = self.run.saturating_add(other.run);
        self.wait = self.wait.saturating_add(other.wait);
        self.blocked = self.blocked.saturating_add(other.blocked);
        self.gc = self.gc.saturating_add(other.gc);
    }

    /// All of it.
    pub fn all(self) -> u64 {
        let Times {
            run,
            wait,
            blocked,
            gc,
        } = self;
        run.saturating_add(wait)
            .saturating_add(blocked)
            .saturating_add(gc)
    }
}

/// A label that stacks must have.
pub type LabelFilter = (Arc<str>, Arc<str>);

/// The times of each node.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// The time of the stack itself.
    pub own: Vec<Times>,
    /// With all that it calls.
    pub total: Vec<Times>,
}

impl Sums {
    /// All that there is.
    pub fn all(&self) -> Times {
        self.total.first().copied().unwrap_or_default()
    }
}

impl Store {
    /// The time of a row in this span.
    pub fn time(&self, row: &Row, scope: Scope) -> u64 {
        match scope {
            Scope::Total => row.total,
            Scope::SinceMark => row.total.saturating_sub(row.mark),
            Scope::Rate if row.recent == 0 => 0,
            Scope::Rate => match self.processes[self.process_of(row) as usize].elapsed_ns {
                0 => 0,
                elapsed => {
                    let rate = u128::from(row.recent) * 1_000_000_000 / u128::from(elapsed);
                    u64::try_from(rate).unwrap_or(u64::MAX)
                }
            },
        }
    }

    /// The rows that are looked at, with their times: without those of idle threads, unless they are
    /// shown.
    pub fn rows_of<'a>(
        &'a self,
        scope: Scope,
        filter: Option<&'a LabelFilter>,
        process: Option<u32>,
    ) -> impl Iterator<Item = (&'a Row, u64)> + 'a {
        let rows = self.all_rows_of(scope, filter, process);
        rows.filter(|(row, _)| self.shows_idle || !row.is_idle)
    }

    /// All of them, with those of idle threads.
    pub fn all_rows_of<'a>(
        &'a self,
        scope: Scope,
        filter: Option<&'a LabelFilter>,
        process: Option<u32>,
    ) -> impl Iterator<Item = (&'a Row, u64)> + 'a {
        let has_label: Vec<bool> = self
            .labels
            .iter()
            .map(|set| filter.is_none_or(|wanted| set.contains(wanted)))
            .collect();
        let timed = self
            .rows
            .iter()
            .map(move |row| (row, self.time(row, scope)));
        timed.filter(move |(row, time)| {
            *time > 0
                && has_label[row.key.labels as usize]
                && process.is_none_or(|process| self.process_of(row) == process)
        })
    }

    /// The times of all stacks.
    pub fn sums(&self, scope: Scope, filter: Option<&LabelFilter>, process: Option<u32>) -> Sums {
        let mut own = vec![Times::default(); self.nodes.len()];
        for (row, time) in self.rows_of(scope, filter, process) {
            own[row.key.node as usize].add_state(row.key.state, time);
        }
        let mut total = own.clone();
        for node in (1..self.nodes.len()).rev() {
            let times = total[node];
            if times != Times::default() {
                total[self.nodes[node].parent as usize].add(times);
            }
        }
        Sums { own, total }
    }
}

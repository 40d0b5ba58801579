//! Questions to the sums, each of one span of time, one label and one process, or of all: the times
//! of nodes, methods and labels. One pass over the rows and one over the nodes, whatever is shown of
//! it.

use super::{Label, Row, Sums};
use rperf_model::Order;
use rperf_model::State;
use rustc_hash::FxHashMap;

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

/// Times by state, and how long others waited for the GVL meanwhile, in ns.
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
    /// Others have waited for the GVL: no time of its own.
    pub blame: u64,
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
        self.blame = self.blame.saturating_add(other.blame);
    }

    /// Each time, changed in this way.
    pub fn map(self, change: impl Fn(u64) -> u64) -> Self {
        Times {
            run: change(self.run),
            wait: change(self.wait),
            blocked: change(self.blocked),
            gc: change(self.gc),
            blame: change(self.blame),
        }
    }

    /// The time in all states.
    pub fn all(self) -> u64 {
        let Times {
            run,
            wait,
            blocked,
            gc,
            blame: _,
        } = self;
        run.saturating_add(wait)
            .saturating_add(blocked)
            .saturating_add(gc)
    }
}

/// The times of each node.
#[derive(Debug, Clone, Default)]
pub struct NodeTimes {
    /// The time of the node itself.
    pub own: Vec<Times>,
    /// With all that it calls.
    pub total: Vec<Times>,
}

impl NodeTimes {
    /// All that there is.
    pub fn all(&self) -> Times {
        self.total.first().copied().unwrap_or_default()
    }
}

/// The times of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodTimes {
    /// The method.
    pub method: u32,
    /// The time of the method itself.
    pub own: Times,
    /// With all that it calls; recursion counts once.
    pub total: Times,
}

impl Sums {
    /// The times of a row in this span.
    pub fn times(&self, row: &Row, scope: Scope) -> Times {
        let (total, mark) = (row.total.blame_ns, row.mark.blame_ns);
        let (time, blame) = match scope {
            Scope::Total => (row.time, total),
            Scope::SinceMark => (
                row.time.saturating_sub(row.time_mark),
                total.saturating_sub(mark),
            ),
            Scope::Rate => {
                let time = &self.processes[self.process_of(row) as usize].time;
                (time.rate(row.recent), time.rate(row.recent_blame))
            }
        };
        let mut times = Times {
            blame,
            ..Times::default()
        };
        times.add_state(row.key.state, time);
        times
    }

    /// The rows that are looked at, with their times: without those of idle threads, unless they are
    /// shown.
    pub fn rows_of<'a>(
        &'a self,
        scope: Scope,
        filter: Option<&'a Label>,
        process: Option<u32>,
    ) -> impl Iterator<Item = (&'a Row, Times)> + 'a {
        let has_label = self.labels.with(filter);
        let rows = self.rows_in(process);
        let timed = rows.map(move |row| (row, self.times(row, scope)));
        timed.filter(move |(row, times)| {
            let is_shown = self.purpose.shows_idle || !row.is_idle;
            *times != Times::default() && is_shown && has_label[row.key.labels as usize]
        })
    }

    /// The times of all nodes.
    pub fn node_times(
        &self,
        scope: Scope,
        filter: Option<&Label>,
        process: Option<u32>,
    ) -> NodeTimes {
        let mut own = vec![Times::default(); self.nodes.len()];
        for (row, times) in self.rows_of(scope, filter, process) {
            own[self.node_of(row) as usize].add(times);
        }
        let mut total = own.clone();
        for node in (1..self.nodes.len()).rev() {
            let times = total[node];
            if times != Times::default() {
                total[self.nodes[node].parent as usize].add(times);
            }
        }
        NodeTimes { own, total }
    }

    /// The methods that have had time, and all time there is.
    pub fn method_times(
        &self,
        scope: Scope,
        filter: Option<&Label>,
        process: Option<u32>,
    ) -> (Vec<MethodTimes>, Times) {
        let times = self.node_times(scope, filter, process);
        let mut methods = vec![MethodTimes::default(); self.methods.len()];
        // The nodes that have had time, from the root to where we are, and how often each method is
        // among them: of those that call themselves the outermost counts.
        let mut callers: Vec<u32> = Vec::new();
        let mut counts = vec![0_u32; self.methods.len()];
        let mut next = self.nodes.first().map_or(0, |root| root.first_child);
        loop {
            if next == 0 {
                let Some(done) = callers.pop() else { break };
                let node = &self.nodes[done as usize];
                counts[node.method as usize] -= 1;
                next = node.next_sibling;
                continue;
            }
            let node = &self.nodes[next as usize];
            let total = times.total[next as usize];
            if total == Times::default() {
                next = node.next_sibling;
                continue;
            }
            let method = &mut methods[node.method as usize];
            method.method = node.method;
            method.own.add(times.own[next as usize]);
            let count = &mut counts[node.method as usize];
            if *count == 0 {
                method.total.add(total);
            }
            *count += 1;
            callers.push(next);
            next = node.first_child;
        }
        methods.retain(|it| it.total != Times::default());
        (methods, times.all())
    }

    /// The labels that something has had, in order, and what has had none. What has several counts for
    /// each.
    pub fn label_times(
        &self,
        scope: Scope,
        filter: Option<&Label>,
        process: Option<u32>,
    ) -> (Vec<(&Label, Times)>, Times) {
        let mut sets = vec![Times::default(); self.labels.len()];
        for (row, times) in self.rows_of(scope, filter, process) {
            sets[row.key.labels as usize].add(times);
        }
        let mut found: FxHashMap<_, Times> = FxHashMap::default();
        for (set, times) in self.labels.iter().zip(&sets) {
            for label in set {
                found.entry(label).or_default().add(*times);
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        found.retain(|(_, times)| *times != Times::default());
        found.order_by_key(|(label, _)| *label);
        (found, sets.first().copied().unwrap_or_default())
    }
}

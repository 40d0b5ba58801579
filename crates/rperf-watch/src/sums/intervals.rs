//! The intervals between pulls: their lengths and figures, where threads are after each, and what
//! becomes of programs that end.

use super::{Figures, HISTORY, Position, State, Sums, Thread, ThreadFacts};
use rperf_format::MemoryFile;
use rustc_hash::FxHashMap;

impl Sums {
    /// An interval of the process begins.
    pub fn begin_interval(&mut self, process: u32) {
        let process = &mut self.processes[process as usize];
        for row in process.recent.drain(..) {
            self.rows[row as usize].end_recent();
        }
        (process.elapsed_ns, process.sampling_ns) = (0, 0);
    }

    /// Ends the interval of the process `number`: it took `elapsed_ns`, and sampling `sampling_ns` of that.
    pub fn end_interval(&mut self, number: u32, elapsed_ns: u64, sampling_ns: u64) {
        let process = &mut self.processes[number as usize];
        (process.elapsed_ns, process.sampling_ns) = (elapsed_ns, sampling_ns);
        process.watched_ns = process.watched_ns.saturating_add(elapsed_ns);
        for (thread, facts) in &mut self.facts {
            if self.threads[*thread as usize].process == number {
                facts.age_ns = facts.age_ns.saturating_add(elapsed_ns);
            }
        }
        self.position(number);
    }

    /// Where the threads of the process are, after an interval.
    fn position(&mut self, process: u32) {
        // And whether they have been elsewhere, too.
        let mut positions: FxHashMap<u32, (Position, bool)> = FxHashMap::default();
        for row in &self.processes[process as usize].recent {
            let row = &self.rows[*row as usize];
            if row.recent == 0 {
                continue;
            }
            let (node, state) = (self.node_of(row), row.key.state);
            let fresh = Position { node, state, ns: 0 };
            let (position, has_moved) = positions.entry(row.key.thread).or_insert((fresh, false));
            match (position.node, position.state) == (node, state) {
                true => position.ns = position.ns.saturating_add(row.recent),
                false => *has_moved = true,
            }
        }
        for (thread, (position, has_moved)) in &mut positions {
            let before = self.positions.get(thread);
            let stays = before.filter(|it| (it.node, it.state) == (position.node, position.state));
            position.ns = match *has_moved {
                true => 0,
                false => position.ns.saturating_add(stays.map_or(0, |it| it.ns)),
            };
            self.positions.insert(*thread, *position);
        }
        let threads = &self.threads;
        self.positions.retain(|thread, _| {
            threads[*thread as usize].process != process || positions.contains_key(thread)
        });
    }

    /// Whether a thread of the process keeps the GVL, so that nothing more is known of it.
    pub fn set_stuck(&mut self, process: u32, is_stuck: bool) {
        self.processes[process as usize].is_stuck = is_stuck;
    }

    /// What the memory of the process is of now, or why that isn't known.
    pub fn set_memory(&mut self, process: u32, found: Result<&MemoryFile, String>) {
        self.processes[process as usize].memory.set(found);
    }

    /// What is known now of the threads of the process, by their numbers in its profile.
    pub fn set_facts(
        &mut self,
        process: u32,
        threads: impl Iterator<Item = (Option<u32>, ThreadFacts)>,
    ) {
        let known = &self.threads;
        self.facts
            .retain(|&thread, _| known[thread as usize].process != process);
        for (seq, facts) in threads {
            let thread = seq.map(|seq| Thread { process, seq });
            // Those without time have no line.
            let thread = thread.and_then(|it| self.intake.threads.get(&it));
            self.facts.extend(thread.map(|&thread| (thread, facts)));
        }
    }

    /// What native threads of the process wait for, where no more is known.
    pub fn set_waits(&mut self, process: u32, threads: impl Iterator<Item = ThreadFacts>) {
        let waits: FxHashMap<_, _> = threads.map(|it| (it.tid, it.waits_in)).collect();
        let now = |facts: &ThreadFacts| waits.get(&facts.tid).cloned().unwrap_or_default();
        for (&thread, facts) in &mut self.facts {
            if self.threads[thread as usize].process == process {
                (facts.waits_in, facts.age_ns) = (now(facts), 0);
            }
        }
    }

    /// The process can't be watched any more. If it was the last one, its last interval stays.
    pub fn end_process(&mut self, process: u32) {
        self.processes[process as usize].has_ended = true;
        self.set_facts(process, std::iter::empty());
        if self.living().next().is_some() {
            self.let_go_of_ended();
        }
    }

    /// The last interval of processes that have ended, and which of their threads had which time.
    pub(super) fn let_go_of_ended(&mut self) {
        for process in 0..self.processes.len() as u32 {
            let it = &mut self.processes[process as usize];
            if it.has_ended && !std::mem::replace(&mut it.is_let_go, true) {
                let rows = std::mem::take(&mut it.rows);
                self.intake.readings[process as usize] = Default::default();
                self.begin_interval(process);
                for row in rows {
                    let row = &mut self.rows[row as usize];
                    row.seen = Default::default();
                    if self.forgets_ended {
                        row.total = Default::default();
                    }
                }
                self.fold(process, |_| true);
            }
        }
    }

    /// All programs have been asked: the picture may be renewed.
    pub fn end_round(&mut self) {
        let figures = self.present_figures();
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(figures);
        self.renew();
    }

    /// The picture may be renewed, and no interval is over.
    pub fn renew(&mut self) {
        self.version += 1;
    }

    fn present_figures(&self) -> Figures {
        let mut figures = Figures::default();
        let mut known = 0;
        for process in &self.processes {
            // In those of which nothing is known, no Ruby code runs.
            known += u32::from(!process.has_ended || process.elapsed_ns > 0);
            if process.elapsed_ns == 0 {
                continue;
            }
            let part = |ns: u64| ns as f64 / process.elapsed_ns as f64;
            for row in &process.recent {
                let row = &self.rows[*row as usize];
                let part = part(row.recent);
                match row.key.state {
                    State::Running => figures.busy += part,
                    State::GvlWait => figures.waiting += part,
                    State::GvlBlocked if row.is_idle && !self.shows_idle => figures.hidden += part,
                    State::GvlBlocked => figures.blocked += part,
                    State::GcMarking | State::GcSweeping => figures.gc += part,
                }
            }
            figures.overhead += part(process.sampling_ns);
        }
        let known = f64::from(known.max(1));
        figures.busy = (figures.busy + figures.gc) / known;
        (figures.gc, figures.overhead) = (figures.gc / known, figures.overhead / known);
        figures
    }
}

//! The intervals between pulls: their lengths and figures, where threads are after each, and what
//! becomes of programs that end.

use super::threads::Positions;
use super::{Figures, Position, Sums, Thread, ThreadFacts};
use rperf_format::MemoryFile;
use rperf_model::State;

impl Sums {
    /// An interval of the process begins.
    pub fn begin_interval(&mut self, process: u32) {
        let process = &mut self.processes[process as usize];
        for row in process.rows.recent.drain(..) {
            self.rows[row as usize].end_recent();
        }
        process.time.begin_interval();
    }

    /// Ends the interval of the process `number`: it took `elapsed_ns`, and sampling `sampling_ns` of that.
    pub fn end_interval(&mut self, number: u32, elapsed_ns: u64, sampling_ns: u64) {
        let process = &mut self.processes[number as usize];
        process.time.end_interval(elapsed_ns, sampling_ns);
        let there = self.positions(number);
        self.threads.end_interval(number, elapsed_ns, there);
    }

    /// Where the threads of the process have been in the last interval.
    fn positions(&self, process: u32) -> Positions {
        let mut positions = Positions::default();
        for row in &self.processes[process as usize].rows.recent {
            let row = &self.rows[*row as usize];
            if row.recent > 0 {
                let there = Position {
                    node: self.node_of(row),
                    state: row.key.state,
                    ns: row.recent,
                };
                positions.add(row.key.thread, there);
            }
        }
        positions
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
        let numbers = &self.intake.threads;
        let known = threads.filter_map(|(seq, facts)| {
            let thread = Thread { process, seq: seq? };
            // Those without time have no line.
            Some((*numbers.get(&thread)?, facts))
        });
        self.threads.set_facts(process, known);
    }

    /// What native threads of the process wait for, where no more is known.
    pub fn set_waits(&mut self, process: u32, threads: impl Iterator<Item = ThreadFacts>) {
        self.threads.set_waits(process, threads);
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
                let rows = std::mem::take(&mut it.rows.all);
                self.intake.readings[process as usize] = Default::default();
                self.begin_interval(process);
                for row in rows {
                    let row = &mut self.rows[row as usize];
                    row.seen = Default::default();
                    if self.purpose.forgets_ended {
                        row.total = Default::default();
                    }
                }
                self.fold(process, |_| true);
            }
        }
    }

    /// All programs have been asked: the picture may be renewed.
    pub fn end_round(&mut self) {
        self.rounds.end(self.present_figures());
    }

    /// The picture may be renewed, and no interval is over.
    pub fn renew(&mut self) {
        self.rounds.renew();
    }

    fn present_figures(&self) -> Figures {
        let mut figures = Figures::default();
        let mut known = 0;
        for process in &self.processes {
            // In those of which nothing is known, no Ruby code runs.
            known += u32::from(!process.has_ended || process.time.knows_interval());
            if !process.time.knows_interval() {
                continue;
            }
            for row in &process.rows.recent {
                let row = &self.rows[*row as usize];
                let part = process.time.part(row.recent);
                match row.key.state {
                    State::Running => figures.busy += part,
                    State::GvlWait => figures.waiting += part,
                    State::GvlBlocked if row.is_idle && !self.purpose.shows_idle => {
                        figures.hidden += part;
                    }
                    State::GvlBlocked => figures.blocked += part,
                    State::GcMarking | State::GcSweeping => figures.gc += part,
                }
            }
            figures.overhead += process.time.overhead();
        }
        let known = f64::from(known.max(1));
        figures.busy = (figures.busy + figures.gc) / known;
        (figures.gc, figures.overhead) = (figures.gc / known, figures.overhead / known);
        figures
    }
}

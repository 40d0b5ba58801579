//! The sums of the programs that are watched, all of them together: methods, stacks, threads,
//! labels, and the values of each row in the session, since it is watched, since the mark, and in
//! the last interval. Filled by who pulls; read, under a lock, by who shows them.

mod directories;
mod feed;
mod intake;
mod intervals;
mod labels;
mod memory;
mod methods;
mod nodes;
mod process;
mod profile;
mod reading;
mod rounds;
mod row;
mod rows;
mod tables;
mod texts;
mod threads;
mod times;

pub use directories::Directories;
pub use feed::{Feed, LockedSums, lock, locked};
pub use labels::{Label, Labels, MORE};
pub use memory::{MemoryRow, ProcessMemory};
pub use methods::{Method, Methods};
pub use nodes::{Node, Nodes};
pub use process::{Process, WatchedTime};
pub use profile::Extent;
pub use rounds::{Figures, HISTORY, Rounds};
pub use row::{Row, RowKey};
pub use threads::{Position, Thread, ThreadFacts, Threads};
pub use times::{MethodTimes, NodeTimes, Scope, Times};

use methods::MethodNumbers;
use nodes::NodeNumbers;
use reading::Reading;
use rperf_model::Strings;
use rustc_hash::FxHashMap;
use texts::ShownTexts;
use threads::ThreadNumbers;

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// What they are made for.
    purpose: Purpose,
    /// The programs; they stay when they have ended.
    pub processes: Vec<Process>,
    /// The directories of the programs.
    pub directories: Directories,
    /// What the rounds have left in which the programs were asked.
    pub rounds: Rounds,
    /// All rows.
    pub rows: Vec<Row>,
    /// All methods.
    pub methods: Methods,
    /// All stacks without their lines.
    pub nodes: Nodes,
    /// All threads.
    pub threads: Threads,
    /// All label sets.
    pub labels: Labels,
    /// All texts as the programs send them.
    strings: Strings,
    intake: Intake,
}

/// What sums are made for: known before anything comes in, and the same ever after.
#[derive(Debug, Clone, Copy, Default)]
pub struct Purpose {
    /// The time of idle threads is shown as all other.
    pub shows_idle: bool,
    /// The time of programs that have ended isn't shown any more.
    pub forgets_ended: bool,
    /// Whether these are the sums of a saved profile: nothing comes any more.
    pub is_saved: bool,
}

/// What only those need who fill the sums.
#[derive(Debug, Clone, Default)]
struct Intake {
    /// How far each program is read.
    readings: Vec<Reading>,
    /// The texts that methods and labels have.
    shown: ShownTexts,
    methods: MethodNumbers,
    nodes: NodeNumbers,
    threads: ThreadNumbers,
    rows: FxHashMap<RowKey, u32>,
}

impl Sums {
    /// Sums without any program.
    pub fn of(purpose: Purpose) -> Self {
        Sums {
            purpose,
            ..Sums::default()
        }
    }

    /// Whether these are the sums of a saved profile: nothing comes any more.
    pub fn is_saved(&self) -> bool {
        self.purpose.is_saved
    }

    /// A copy to be looked at, which nothing is added to.
    pub fn picture(&mut self) -> Sums {
        let intake = std::mem::take(&mut self.intake);
        let picture = self.clone();
        self.intake = intake;
        picture
    }

    /// The callees of a node.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.nodes.children(node)
    }

    /// The method of a node; `None` for the root.
    pub fn method(&self, node: u32) -> Option<&Method> {
        self.methods
            .get(self.nodes.get(node as usize)?.method as usize)
    }

    /// The node of a row.
    pub fn node_of(&self, row: &Row) -> u32 {
        self.nodes.of_stack(row.key.stack)
    }

    /// The rows of a process, or of all.
    pub(crate) fn rows_in(&self, process: Option<u32>) -> impl Iterator<Item = &Row> {
        let processes = match process {
            Some(process) => &self.processes[process as usize..][..1],
            None => &self.processes[..],
        };
        let numbers = processes.iter().flat_map(|it| &it.rows.all);
        numbers.map(|number| &self.rows[*number as usize])
    }

    /// The process of a row.
    pub fn process_of(&self, row: &Row) -> u32 {
        self.threads.process_of(row.key.thread)
    }

    /// The figures of the last interval.
    pub fn figures(&self) -> Figures {
        self.rounds.last()
    }

    /// The processes that haven't ended.
    pub fn living(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|it| !it.has_ended)
    }

    /// Whether nothing is known of the last interval of the programs, though there were others.
    pub fn is_unknown(&self) -> bool {
        self.living().any(|it| it.time.watched_ns() > 0)
            && self.living().all(|it| !it.time.knows_interval())
    }

    /// Whether that is because threads of theirs keep the GVL.
    pub fn is_stuck(&self) -> bool {
        self.living().any(|it| it.is_stuck)
    }

    /// Whether it is known of any program for whom its threads wait that want the GVL.
    pub fn has_blame(&self) -> bool {
        self.processes.iter().any(|it| it.facts.blames)
    }

    /// Whether the programs are profiled in wall mode: those that are there, or else the last one.
    pub fn is_wall(&self) -> bool {
        let mut living = self.living().peekable();
        match living.peek() {
            Some(_) => living.all(|it| !it.is_cpu()),
            None => self.processes.last().is_none_or(|it| !it.is_cpu()),
        }
    }
}

#[cfg(test)]
mod tests;

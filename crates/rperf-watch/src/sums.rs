//! The sums of the programs that are watched, all of them together: methods, stacks, threads,
//! labels, and the values of each row in the session, since it is watched, since the mark, and in
//! the last interval. Filled by who pulls; read, under a lock, by who shows them.

mod feed;
mod intake;
mod intervals;
mod memory;
mod profile;
mod reading;
mod row;
mod rows;
mod tables;
mod times;

pub use feed::{Feed, LockedSums, lock};
pub use memory::{MemoryRow, ProcessMemory};
pub use profile::Extent;
pub use row::{Row, RowKey};
pub use times::{MethodTimes, NodeTimes, Scope, Times};

use reading::Reading;
use rperf_model::shared_sums::SumsFacts;
use rperf_model::{CallTree, Frames, LabelSets, Mode, State, Strings};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Intervals whose figures are kept.
pub const HISTORY: usize = 120;

/// The label of time that found no room of its own.
pub const MORE: &str = "(more)";

/// A method: its name and paths, fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: Arc<str>,
    /// Its file.
    pub path: Arc<str>,
    /// The path as people see it.
    pub short_path: Arc<str>,
}

/// A stack without its lines.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The node of the caller. The root is its own.
    pub parent: u32,
    /// The method.
    pub method: u32,
    /// The callees: the last one's number, and the one's before it of the same caller; 0 for none.
    pub first_child: u32,
    /// The next callee of the same caller.
    pub next_sibling: u32,
}

/// A thread of a process. 0 stands for those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The place of its process.
    pub process: u32,
    /// Its number in the program.
    pub seq: u32,
}

/// What is known of a thread beside its times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// What the program calls it; empty if it has no name.
    pub name: Arc<str>,
    /// The number of its native thread; 0 if it has none.
    pub tid: u32,
    /// What it waits for in the kernel; empty if it doesn't.
    pub waits_in: Arc<str>,
    /// How long ago that was.
    pub age_ns: u64,
}

impl ThreadFacts {
    /// What a thread at `position` waits for, if that hasn't changed since it was looked at: times of
    /// threads are known less exactly than those of intervals.
    pub fn waits_at(&self, position: &Position) -> &str {
        match position.ns >= self.age_ns - self.age_ns / 20 {
            true => &self.waits_in,
            false => "",
        }
    }
}

/// Where a thread is, and since when: as long as all of its time has gone into one node, in one
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The node.
    pub node: u32,
    /// What the thread did there.
    pub state: State,
    /// For how long at least.
    pub ns: u64,
}

/// A program.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// What it calls itself.
    pub program: String,
    /// Facts about its session, as of the last page.
    pub facts: SumsFacts,
    /// Whether the profile has other values than those of sampling: only their times are known.
    pub is_foreign: bool,
    /// The length of the last interval; 0 if nothing is known of it.
    pub elapsed_ns: u64,
    /// How long it has been watched.
    pub watched_ns: u64,
    /// How long that was at the mark.
    pub mark_ns: u64,
    /// How much of the last interval sampling has taken.
    pub sampling_ns: u64,
    /// The time of samples that found no room, since it is watched, and at the mark.
    dropped_ns: u64,
    dropped_mark_ns: u64,
    /// A thread of it keeps the GVL, so that nothing more is known.
    pub is_stuck: bool,
    /// What its memory is of, if somebody has looked.
    pub memory: ProcessMemory,
    /// Whether the program can't be watched any more, as when it has ended.
    pub has_ended: bool,
    /// What comes counts as the time in which it is watched.
    counts: bool,
    /// What is only of use while it is there has been let go.
    is_let_go: bool,
    /// Its rows.
    rows: Vec<u32>,
    /// Its rows that changed in the last interval.
    recent: Vec<u32>,
}

impl Process {
    /// Its number, if it is known, and what it calls itself.
    pub fn title(&self) -> String {
        match self.pid {
            0 => self.program.clone(),
            pid => format!("{pid} {}", self.program),
        }
    }

    fn is_cpu(&self) -> bool {
        self.facts.sampling() == Some(Mode::Cpu)
    }
}

/// The figures of an interval, for all programs together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// The part of the time in which a thread of a program ran or collected garbage, on average.
    pub busy: f64,
    /// Threads that waited for the GVL.
    pub waiting: f64,
    /// The part of the time in which garbage was collected.
    pub gc: f64,
    /// Threads that were blocked, but for those that are idle and not shown.
    pub blocked: f64,
    /// Threads that are idle and not shown.
    pub hidden: f64,
    /// The part of the time that sampling took.
    pub overhead: f64,
}

/// A label: its key and value.
pub type Label = (Arc<str>, Arc<str>);

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    /// The programs; they stay when they have ended.
    pub processes: Vec<Process>,
    /// All methods.
    pub methods: Vec<Method>,
    /// All stacks without their lines; callers come first, and the root before all.
    pub nodes: Vec<Node>,
    /// All threads.
    pub threads: Vec<Thread>,
    /// What else is known of them.
    pub facts: FxHashMap<u32, ThreadFacts>,
    /// Where those are that had time in the last interval of their process.
    pub positions: FxHashMap<u32, Position>,
    /// All label sets, fit for a terminal; the first one is empty.
    pub labels: Vec<Vec<Label>>,
    /// All rows.
    pub rows: Vec<Row>,
    /// The time of idle threads is shown as all other.
    pub shows_idle: bool,
    /// The time of programs that have ended isn't shown any more.
    pub forgets_ended: bool,
    /// The directories that the programs' own files belong to.
    pub roots: Vec<String>,
    /// The directories that have rperf's files.
    pub rperf_directories: Vec<String>,
    /// How many methods have their short paths.
    shortened: usize,
    /// The last intervals, the newest last.
    pub history: VecDeque<Figures>,
    /// Whether these are the sums of a saved profile: nothing comes any more.
    pub is_saved: bool,
    /// Whether there is a mark.
    pub has_mark: bool,
    /// Changes with each interval.
    pub version: u64,
    /// Changes with each page that brings something.
    pub generation: u64,
    /// All texts, frames, stacks and label sets as the programs send them.
    strings: Strings,
    frames: Frames,
    stacks: CallTree,
    label_sets: LabelSets,
    /// The method of each frame, and the node of each stack, that of the root first.
    frame_methods: Vec<u32>,
    stack_nodes: Vec<u32>,
    intake: Intake,
}

/// What only those need who fill the sums.
#[derive(Debug, Clone, Default)]
struct Intake {
    /// How far each program is read.
    readings: Vec<Reading>,
    /// The texts that methods and labels have, by the numbers of the strings.
    shown: Vec<Option<Arc<str>>>,
    methods: FxHashMap<Label, u32>,
    /// All nodes by caller and method, but for the last callee of each.
    nodes: FxHashMap<(u32, u32), u32>,
    threads: FxHashMap<Thread, u32>,
    rows: FxHashMap<RowKey, u32>,
}

impl Sums {
    /// A copy to be looked at, which nothing is added to.
    pub fn picture(&mut self) -> Sums {
        let intake = std::mem::take(&mut self.intake);
        let picture = self.clone();
        self.intake = intake;
        picture
    }

    /// The callees of a node.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |node: u32| (node != 0).then_some(node);
        let first = self.nodes.get(node as usize);
        let first = first.and_then(|it| next(it.first_child));
        std::iter::successors(first, move |&it| next(self.nodes[it as usize].next_sibling))
    }

    /// The method of a node; `None` for the root.
    pub fn method(&self, node: u32) -> Option<&Method> {
        self.methods
            .get(self.nodes.get(node as usize)?.method as usize)
    }

    /// The node of a row.
    pub fn node_of(&self, row: &Row) -> u32 {
        self.stack_nodes[row.key.stack as usize]
    }

    /// The rows of a process, or of all.
    pub(crate) fn rows_in(&self, process: Option<u32>) -> impl Iterator<Item = &Row> {
        let processes = match process {
            Some(process) => &self.processes[process as usize..][..1],
            None => &self.processes[..],
        };
        let numbers = processes.iter().flat_map(|it| &it.rows);
        numbers.map(|number| &self.rows[*number as usize])
    }

    /// The process of a row.
    pub fn process_of(&self, row: &Row) -> u32 {
        self.threads[row.key.thread as usize].process
    }

    /// The figures of the last interval.
    pub fn figures(&self) -> Figures {
        self.history.back().copied().unwrap_or_default()
    }

    /// The processes that haven't ended.
    pub fn living(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|it| !it.has_ended)
    }

    /// Whether nothing is known of the last interval of the programs, though there were others.
    pub fn is_unknown(&self) -> bool {
        self.living().any(|it| it.watched_ns > 0) && self.living().all(|it| it.elapsed_ns == 0)
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

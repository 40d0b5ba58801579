//! What is known of the programs that are watched, all of them together: methods, stacks, threads,
//! labels, and the time of each row since they are watched, since the mark, and in the last
//! interval. Filled by who pulls; read, under a lock, by the screens.

mod fill;
mod sums;

pub use sums::{LabelFilter, Scope, Sums, Times};

use rperf_model::{Mode, State};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Intervals whose figures are kept.
pub const HISTORY: usize = 120;

/// Nodes at most; further stacks are those of their callers.
pub const NODE_CAP: usize = 1 << 20;

/// Methods at most: further ones count together.
pub const METHOD_CAP: usize = 1 << 18;
/// Label sets at most: further ones count together.
pub const LABEL_CAP: usize = 1 << 15;
/// Threads at most: further ones count under thread 0.
pub const THREAD_CAP: usize = 1 << 18;

/// Rows at most; further ones have no labels, and count under thread 0.
pub const ROW_CAP: usize = 1 << 20;

/// What stands for methods and labels that are too many.
pub const MORE: &str = "(more)";

/// A method: its name and paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name.
    pub name: Arc<str>,
    /// Its file.
    pub path: Arc<str>,
    /// The path as people see it.
    pub short_path: Arc<str>,
}

/// A stack.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The stack of the caller. The root is its own.
    pub parent: u32,
    /// The method.
    pub method: u32,
    /// No caller is the same method.
    pub is_outermost: bool,
    /// The callees: the first one's number, and the next one's of the same caller; 0 for none.
    pub first_child: u32,
    /// The next callee of the same caller.
    pub next_sibling: u32,
}

/// A thread of a process. 0 stands for those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The place of its process.
    pub process: u32,
    /// Its number in the profile.
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

/// Where a thread is, and since when: as long as all of its time has gone into one stack, in one
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The stack.
    pub node: u32,
    /// What the thread did there.
    pub state: State,
    /// For how long at least.
    pub ns: u64,
}

/// What a row's time belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The stack.
    pub node: u32,
    /// The thread.
    pub thread: u32,
    /// The labels.
    pub labels: u32,
    /// What the thread did.
    pub state: State,
}

/// The times of a row, in ns.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where they belong.
    pub key: RowKey,
    /// Since the program is watched.
    pub total: u64,
    /// What `total` was at the mark.
    pub mark: u64,
    /// In the last interval.
    pub recent: u64,
    /// It is the time of an idle thread.
    pub is_idle: bool,
}

/// A program.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// What it calls itself.
    pub program: String,
    /// Its session: `wall` or `cpu`.
    pub mode: String,
    /// Samples per second.
    pub frequency: u32,
    /// The length of the last interval; 0 if nothing is known of it.
    pub elapsed_ns: u64,
    /// How long it has been watched.
    pub watched_ns: u64,
    /// How long that was at the mark.
    pub mark_ns: u64,
    /// How much of the last interval sampling has taken.
    pub sampling_ns: u64,
    /// A thread of it keeps the GVL, so that nothing more is known.
    pub is_stuck: bool,
    /// It can't be watched any more.
    pub has_ended: bool,
    /// What is only of use while it is there has been let go.
    is_let_go: bool,
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
        self.mode == Mode::Cpu.name()
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

/// All of it.
#[derive(Debug, Clone)]
pub struct Store {
    /// The programs; they stay when they have ended.
    pub processes: Vec<Process>,
    /// All methods.
    pub methods: Vec<Method>,
    /// All stacks; callers come first.
    pub nodes: Vec<Node>,
    /// All threads.
    pub threads: Vec<Thread>,
    /// What else is known of them.
    pub facts: FxHashMap<u32, ThreadFacts>,
    /// Where those are that had time in the last interval of their process.
    pub positions: FxHashMap<u32, Position>,
    /// All label sets; the first one is empty.
    pub labels: Vec<Vec<Label>>,
    /// All rows.
    pub rows: Vec<Row>,
    /// The time of idle threads is shown as all other.
    pub shows_idle: bool,
    /// The directories that the programs' own files belong to.
    pub roots: Vec<String>,
    /// The directories that have rperf's files.
    pub rperf_directories: Vec<String>,
    /// How many methods have their short paths.
    shortened: usize,
    /// The last intervals, the newest last.
    pub history: VecDeque<Figures>,
    /// It is a profile of the past: nothing comes any more.
    pub is_saved: bool,
    /// Whether there is a mark.
    pub has_mark: bool,
    /// Changes with each interval.
    pub version: u64,
    index: Arc<Index>,
}

/// A label: its key and value.
pub type Label = (Arc<str>, Arc<str>);

/// Where things are.
#[derive(Debug, Clone, Default)]
struct Index {
    methods: FxHashMap<(Arc<str>, Arc<str>), u32>,
    nodes: FxHashMap<(u32, u32), u32>,
    threads: FxHashMap<Thread, u32>,
    labels: FxHashMap<Vec<Label>, u32>,
    rows: FxHashMap<RowKey, u32>,
}

impl Default for Store {
    fn default() -> Self {
        let root = Node {
            parent: 0,
            method: u32::MAX,
            is_outermost: false,
            first_child: 0,
            next_sibling: 0,
        };
        let mut store = Store {
            processes: Vec::new(),
            methods: Vec::new(),
            nodes: vec![root],
            threads: Vec::new(),
            facts: FxHashMap::default(),
            positions: FxHashMap::default(),
            labels: Vec::new(),
            rows: Vec::new(),
            shows_idle: false,
            roots: Vec::new(),
            rperf_directories: Vec::new(),
            shortened: 0,
            history: VecDeque::new(),
            is_saved: false,
            has_mark: false,
            version: 0,
            index: Arc::default(),
        };
        store.label_set(std::iter::empty());
        store
    }
}

impl Store {
    /// The callees of a stack.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |node: u32| (node != 0).then_some(node);
        let first = next(self.nodes[node as usize].first_child);
        std::iter::successors(first, move |&it| next(self.nodes[it as usize].next_sibling))
    }

    /// The method of a stack; `None` for the root.
    pub fn method(&self, node: u32) -> Option<&Method> {
        self.methods
            .get(self.nodes.get(node as usize)?.method as usize)
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

//! A line of a screen: what it is about, and its times; and what is asked for when lines are made.
//! On the command's thread.

use rperf_watch::sums::{Label, Scope, Sums, Times};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// By what lines are sorted, most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Time that it ran itself.
    Own,
    /// Time that it or its callees ran.
    Total,
    /// Time without the GVL, ready to run.
    Wait,
    /// Time in which it was blocked.
    Blocked,
    /// Time of garbage collection.
    Gc,
    /// Time for which others waited for the GVL while it or its callees had it.
    Blame,
}

/// What a line is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A heading: the process's place.
    Process(u32),
    /// A method.
    Method(u32),
    /// A thread, and the stack that it has been in most.
    Thread(u32, u32),
    /// A label.
    Label(Arc<str>, Arc<str>),
    /// All that has no label.
    NoLabel,
    /// Memory of a process: the row at this place, or all.
    Memory(u32, Option<u32>),
}

/// A line.
#[derive(Debug, Clone)]
pub struct Line {
    /// What it is about.
    pub what: What,
    /// By which it is found again.
    pub key: u64,
    /// How far it is indented.
    pub depth: usize,
    /// Whether it is opened; `None` if there is nothing to open.
    pub opens: Option<bool>,
    /// Its own times.
    pub own: Times,
    /// With what it calls.
    pub total: Times,
    /// The parts of the whole are given of this many ns: of its process, or of all.
    pub whole: u64,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The span of time.
    pub scope: Scope,
    /// The label that is looked at.
    pub filter: Option<&'a Label>,
    /// Names that are looked for.
    pub search: &'a str,
    /// By what it is sorted.
    pub sort: Sort,
    /// With a heading for each process.
    pub by_process: bool,
}

impl Question<'_> {
    /// Each process with a heading, or all at once.
    pub fn processes(&self, sums: &Sums) -> Vec<Option<u32>> {
        match self.by_process {
            true => (0..sums.processes.len() as u32).map(Some).collect(),
            false => vec![None],
        }
    }

    /// Whether `text` is looked for.
    pub fn finds(&self, text: &str) -> bool {
        if self.search.is_empty() {
            return true;
        }
        let has_capitals = self.search.chars().any(char::is_uppercase);
        match has_capitals {
            true => text.contains(self.search),
            false => text.to_lowercase().contains(self.search),
        }
    }

    /// Whether the method is.
    pub fn finds_method(&self, sums: &Sums, method: u32) -> bool {
        self.search.is_empty()
            || sums.methods.get(method as usize).is_some_and(|it| {
                self.finds(&it.name) || self.finds(&it.path) || self.finds(&it.short_path)
            })
    }
}

impl Line {
    /// What it is sorted by. In trees all times are with what it calls.
    pub fn value(&self, sort: Sort, is_tree: bool) -> u64 {
        let times = if is_tree { self.total } else { self.own };
        match sort {
            Sort::Own => self.own.run,
            Sort::Total => self.total.run,
            Sort::Wait => times.wait,
            Sort::Blocked => times.blocked,
            Sort::Gc => times.gc,
            // The leaf alone says little: mostly it is a method of Ruby's own.
            Sort::Blame => self.total.blame,
        }
    }

    /// Above the lines of a process.
    pub fn heading(process: u32, total: Times) -> Self {
        Line {
            what: What::Process(process),
            key: key(&("process", process)),
            depth: 0,
            opens: None,
            own: Times::default(),
            total,
            whole: total.run,
        }
    }
}

/// Most first; what is equal stays as it was.
pub fn sort_lines(lines: &mut [Line], sort: Sort, is_tree: bool) {
    lines.sort_by_cached_key(|line| {
        let value = line.value(sort, is_tree);
        std::cmp::Reverse((value, line.total.run, line.total.all()))
    });
}

/// By which a line is found again.
pub fn key(of: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}

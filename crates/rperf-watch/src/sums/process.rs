//! A program that is watched: what is known of it, for how long it is watched, and which rows are
//! its own.

use super::memory::ProcessMemory;
use rperf_model::Mode;
use rperf_model::shared_sums::{SumsFacts, SumsValues};

/// A program.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// What it calls itself.
    pub program: String,
    /// Facts about its session, as of the last page.
    pub facts: SumsFacts,
    /// The name of the times of a profile that has other values than those of sampling: nothing else of it is
    /// known.
    pub foreign_time: Option<String>,
    /// For how long it is watched.
    pub time: WatchedTime,
    /// A thread of it keeps the GVL, so that nothing more is known.
    pub is_stuck: bool,
    /// What its memory is of, if somebody has looked.
    pub memory: ProcessMemory,
    /// Whether the program can't be watched any more, as when it has ended.
    pub has_ended: bool,
    /// What comes counts as the time in which it is watched.
    pub(super) counts: bool,
    /// What is only of use while it is there has been let go.
    pub(super) is_let_go: bool,
    /// Its rows.
    pub(super) rows: OwnRows,
}

impl Process {
    /// Its number, if it is known, and what it calls itself.
    pub fn title(&self) -> String {
        match self.pid {
            0 => self.program.clone(),
            pid => format!("{pid} {}", self.program),
        }
    }

    /// The name of the time that its session measures.
    pub fn time_name(&self) -> &str {
        let foreign = self.foreign_time.as_deref();
        foreign.unwrap_or_else(|| self.facts.mode.name())
    }

    pub(super) fn is_cpu(&self) -> bool {
        self.facts.mode == Mode::Cpu
    }

    /// The time that its session measures.
    pub(super) fn time_of(&self, values: SumsValues) -> u64 {
        self.facts.time_of(values)
    }

    /// The facts of a page have come. What found no room since the last one counts, if the program is
    /// watched; a new session begins with nothing.
    pub(super) fn take_facts(&mut self, now: &SumsFacts) {
        let before_ns = match self.facts.start_ns == now.start_ns {
            true => self.facts.dropped_ns,
            false => 0,
        };
        if self.counts {
            self.time
                .drop_more(now.dropped_ns.saturating_sub(before_ns));
        }
        self.facts = now.clone();
    }
}

/// For how long a program is watched, and what of that was lost. The times at the mark are those of
/// an earlier moment, so they are never more than those of now.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchedTime {
    /// The length of the last interval; 0 if nothing is known of it.
    elapsed_ns: u64,
    /// How much of the last interval sampling has taken.
    sampling_ns: u64,
    /// How long it has been watched.
    watched_ns: u64,
    /// How long that was at the mark.
    mark_ns: u64,
    /// The time of samples that found no room, since it is watched, and at the mark.
    dropped_ns: u64,
    dropped_mark_ns: u64,
}

impl WatchedTime {
    /// How long it has been watched.
    pub fn watched_ns(&self) -> u64 {
        self.watched_ns
    }

    /// How long it has been watched since the mark.
    pub fn since_mark_ns(&self) -> u64 {
        self.watched_ns.saturating_sub(self.mark_ns)
    }

    /// The time of samples that found no room, since it is watched.
    pub(super) fn dropped_ns(&self) -> u64 {
        self.dropped_ns
    }

    /// The time of samples that found no room, since the mark.
    pub(super) fn dropped_since_mark_ns(&self) -> u64 {
        self.dropped_ns.saturating_sub(self.dropped_mark_ns)
    }

    /// Whether anything is known of the last interval.
    pub(super) fn knows_interval(&self) -> bool {
        self.elapsed_ns > 0
    }

    /// A time of the last interval in ns per second; 0 if nothing is known of it.
    pub(super) fn rate(&self, ns: u64) -> u64 {
        if !self.knows_interval() {
            return 0;
        }
        let rate = u128::from(ns) * 1_000_000_000 / u128::from(self.elapsed_ns);
        u64::try_from(rate).unwrap_or(u64::MAX)
    }

    /// What part of the last interval, of which something must be known, a time is.
    pub(super) fn part(&self, ns: u64) -> f64 {
        ns as f64 / self.elapsed_ns as f64
    }

    /// The part of the last interval that sampling has taken.
    pub(super) fn overhead(&self) -> f64 {
        self.part(self.sampling_ns)
    }

    /// An interval begins.
    pub(super) fn begin_interval(&mut self) {
        (self.elapsed_ns, self.sampling_ns) = (0, 0);
    }

    /// The interval took `elapsed_ns`, and sampling `sampling_ns` of that.
    pub(super) fn end_interval(&mut self, elapsed_ns: u64, sampling_ns: u64) {
        (self.elapsed_ns, self.sampling_ns) = (elapsed_ns, sampling_ns);
        self.watched_ns = self.watched_ns.saturating_add(elapsed_ns);
    }

    /// Samples of so much more time found no room.
    fn drop_more(&mut self, ns: u64) {
        self.dropped_ns = self.dropped_ns.saturating_add(ns);
    }

    /// From now on "since the mark" counts from here.
    pub(super) fn set_mark(&mut self) {
        (self.mark_ns, self.dropped_mark_ns) = (self.watched_ns, self.dropped_ns);
    }
}

/// The rows of a program, by their numbers in the sums.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnRows {
    /// All of them.
    pub all: Vec<u32>,
    /// Rows that changed in the last interval. Each is among `all`.
    pub recent: Vec<u32>,
}

impl OwnRows {
    /// No row is the program's any more.
    pub fn clear(&mut self) {
        self.all.clear();
        self.recent.clear();
    }
}

//! A row of the sums, and what it belongs to.

use rperf_model::State;
use rperf_model::shared_sums::SumsValues;

/// What a row's values belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowKey {
    /// The stack, with its lines.
    pub stack: u32,
    /// The thread.
    pub thread: u32,
    /// The labels.
    pub labels: u32,
    /// What the thread did.
    pub state: State,
}

/// The values of a row.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where they belong.
    pub key: RowKey,
    /// What the program has sent last: its sums since its session began.
    pub seen: SumsValues,
    /// Since the program is watched.
    pub total: SumsValues,
    /// What `total` was at the mark.
    pub mark: SumsValues,
    /// The time in `total` that the sessions have measured, each in its own mode; in ns.
    pub time: u64,
    /// How much that was at the mark.
    pub time_mark: u64,
    /// The time of the last interval, in ns.
    pub recent: u64,
    /// For how long others have waited for the GVL meanwhile, in ns.
    pub recent_blame: u64,
    /// Whether the row is the time of an idle thread.
    pub is_idle: bool,
}

impl Row {
    /// Whether the program has sent any of it.
    pub fn has_been_seen(&self) -> bool {
        self.seen != SumsValues::default()
    }

    /// Takes off what this session has brought, which came after all else, and so much `time`.
    pub fn leave_out_session(&mut self, time: u64) {
        self.time = self.time.saturating_sub(time);
        self.time_mark = self.time_mark.min(self.time);
        self.total = self.total.without(self.seen);
        self.mark = self.mark.without(self.mark.without(self.total));
        self.seen = SumsValues::default();
        self.end_recent();
    }

    /// Whether the last interval has brought anything.
    pub fn is_recent(&self) -> bool {
        (self.recent, self.recent_blame) != (0, 0)
    }

    /// The last interval is over.
    pub fn end_recent(&mut self) {
        (self.recent, self.recent_blame) = (0, 0);
    }

    /// Adds a row that has become one with it.
    pub fn merge(&mut self, other: &Row) {
        self.seen.add(other.seen);
        self.total.add(other.total);
        self.mark.add(other.mark);
        self.time = self.time.saturating_add(other.time);
        self.time_mark = self.time_mark.saturating_add(other.time_mark);
        self.recent = self.recent.saturating_add(other.recent);
        self.recent_blame = self.recent_blame.saturating_add(other.recent_blame);
        self.is_idle |= other.is_idle;
    }
}

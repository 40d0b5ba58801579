//! What is kept for a thread that is traced. Under the GVL.

use super::counts::Counts;

/// A thread.
#[derive(Debug)]
pub(super) struct TracedThread {
    pub(super) counts: Counts,
    /// The fiber that it runs, or ran when it gave the GVL up.
    pub(super) fiber: usize,
    /// Its own fiber, if that is known and no switch to it has told its object.
    pub(super) own_fiber: Option<usize>,
    /// Since when it has been without the GVL; `None` while it runs.
    pub(super) away_since: Option<u64>,
}

impl TracedThread {
    /// A thread without the GVL, whose own stack is `fiber`.
    pub(super) fn new(fiber: usize, now: u64) -> Self {
        Self {
            counts: Counts::default(),
            fiber,
            own_fiber: None,
            away_since: Some(now),
        }
    }
}

//! What a thread is doing, as far as the events have told.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// The thread has not been seen yet.
    Unknown,
    /// Holds the GVL; running time is accounted up to `since`, and the thread
    /// got the GVL at `resumed`.
    Running { since: u64, resumed: u64 },
    /// Gave the GVL up at `began`; off-GVL time is accounted up to `since`.
    Off { since: u64, began: Began },
}

/// When a thread gave the GVL up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    /// The time from which on it was seen without the GVL, in ns on the monotonic clock.
    pub at_ns: u64,
    /// Whether it hadn't had the GVL before, either.
    pub or_before: bool,
}

impl Activity {
    /// The activity of a thread that gives the GVL up now, or was first seen without it.
    pub(super) fn off(now: u64, or_before: bool) -> Self {
        Activity::Off {
            since: now,
            began: Began {
                at_ns: now,
                or_before,
            },
        }
    }
}

//! What a client pulls that watches the session, and what the session's worker answers. Made on
//! the port's thread, and on the worker's.

use rperf_model::shared_sums::{Cursor, SharedSums};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The table of the session, which its worker fills.
pub type SharedTable = Arc<Mutex<SharedSums>>;

/// Which thread has the GVL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// The number of its native thread.
    pub tid: u32,
    /// Another one each time that a thread gets the GVL.
    pub turn: u32,
}

/// Tells which thread has the GVL now, as the session's hooks have noted it.
pub type Holder = Arc<dyn Fn() -> Option<Holding> + Send + Sync>;

/// The sums were brought up to date.
pub struct Step {
    /// The table.
    pub table: SharedTable,
    /// All that there is has come into it: a large session takes several steps.
    pub is_complete: bool,
    /// Who has the GVL, where the session knows that.
    pub holder: Option<Holder>,
}

/// What a client waits for.
#[derive(Debug, Clone, Copy)]
pub struct Pull {
    /// How far it is.
    pub cursor: Cursor,
    /// When it asked.
    pub since: Instant,
    /// When it has waited long enough.
    pub until: Instant,
}

impl Pull {
    /// What is asked from `cursor` on, and waited for so long.
    pub fn of(cursor: Cursor, wait: Duration) -> Self {
        let since = Instant::now();
        Pull {
            cursor,
            since,
            until: since + wait,
        }
    }
}

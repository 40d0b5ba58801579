//! What a client pulls that watches the session, and what the session's worker answers. Made on
//! the port's thread, and on the worker's.

use rperf_model::live_table::{Cursor, LiveTable};
use rperf_protocol::message::{Refusal, Request};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a client waits for the step if it doesn't say.
const WAIT: u64 = 20;
/// The longest that it can say, in ms.
const MAX_WAIT: u64 = 1000;

/// The table of the session, which its worker fills.
pub type SharedTable = Arc<Mutex<LiveTable>>;

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
    /// What `request` asks for.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let (mut cursor, mut wait_ms) = (Cursor::default(), WAIT);
        for pair in request.query.split('&').filter(|pair| !pair.is_empty()) {
            let is_known = match pair.split_once('=') {
                Some(("at", text)) => text.parse().map(|found| cursor = found).is_ok(),
                Some(("wait_ms", text)) => text.parse().map(|found| wait_ms = found).is_ok(),
                // Of a later version.
                _ => true,
            };
            if !is_known {
                let hint = "leave it out to begin, and give back the cursor of the last answer";
                return Err(Refusal::new(400, format!("{pair} is wrong"), hint));
            }
        }
        let since = Instant::now();
        Ok(Pull {
            cursor,
            since,
            until: since + Duration::from_millis(wait_ms.min(MAX_WAIT)),
        })
    }
}

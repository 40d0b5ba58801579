//! A program's way into the sums, which others look into meanwhile. On the thread that pulls.

use super::{RowKey, Sums};
use rperf_model::Mode;
use rperf_protocol::delta::{BadDelta, Delta};
use rperf_protocol::hello::Hello;
use rperf_report::Idle;
use rperf_report::terminal_text::shown;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sums, which several threads use.
pub type LockedSums = Arc<Mutex<Sums>>;

/// Locks them.
pub fn lock(sums: &Mutex<Sums>) -> MutexGuard<'_, Sums> {
    sums.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way of a program.
#[derive(Debug, Clone)]
pub struct Feed {
    sums: LockedSums,
    /// The program's place there.
    pub process: u32,
}

impl Feed {
    /// The way of a program that comes in.
    pub fn new(sums: &LockedSums, pid: i32, hello: &Hello) -> Self {
        let process = {
            let mut sums = lock(sums);
            sums.add_directories(&hello.roots, &hello.rperf_directories);
            sums.add_process(pid, &shown(&hello.program))
        };
        Feed {
            sums: Arc::clone(sums),
            process,
        }
    }

    /// The sums.
    pub fn lock(&self) -> MutexGuard<'_, Sums> {
        lock(&self.sums)
    }

    /// Takes a page in. Behind the last one of a pull, what is hidden of it is known, too.
    pub fn take(&self, delta: Delta) -> Result<(), BadDelta> {
        let more = delta.changes.more;
        let hides_idle = {
            let mut sums = self.lock();
            sums.take(self.process, delta)?;
            !sums.shows_idle && sums.processes[self.process as usize].counts
        };
        if hides_idle && !more {
            self.note_idle();
        }
        Ok(())
    }

    /// Notes which rows are those of idle threads, by the rule of reports.
    pub fn note_idle(&self) {
        let session = {
            let sums = self.lock();
            let facts = &sums.processes[self.process as usize].facts;
            match facts.sampling() {
                Some(Mode::Wall) => sums.session_of(self.process).map(|(profile, rows)| {
                    let keys: Vec<RowKey> = rows.iter().map(|row| row.key).collect();
                    (profile, keys)
                }),
                _ => None,
            }
        };
        let Some((profile, keys)) = session else {
            return;
        };
        // Without the lock: that takes longest.
        let idle = Idle::of(&profile);
        let rows = keys.into_iter().zip(idle.rows());
        let idle: FxHashSet<RowKey> = rows.filter(|it| *it.1).map(|it| it.0).collect();
        let is_idle = |key: &RowKey| idle.contains(key);
        self.lock().set_idle(self.process, is_idle);
    }
}

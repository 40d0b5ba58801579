//! What the memory of programs is of: each is looked at from time to time, on a thread and a connection of
//! its own, while the user looks at the screen of memory. A program that waits isn't woken for that.

use super::group::Member;
use crate::live::words::message;
use rperf_session::process_id::ProcessId;
use rperf_watch::memory::{Look, LookError, look};
use rperf_watch::sums::{LockedSums, lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How often.
const INTERVAL: Duration = Duration::from_secs(2);

/// When a program was asked last, and whether the answer is under way.
#[derive(Default)]
struct Asking {
    asked: Option<Instant>,
    is_asked: Arc<AtomicBool>,
}

/// However the thread ends that asks.
struct Done(Arc<AtomicBool>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

/// Asks the programs.
pub struct MemoryAsker {
    sums: LockedSums,
    /// The user looks at memory.
    is_wanted: Arc<AtomicBool>,
    askings: HashMap<u32, Asking>,
}

impl MemoryAsker {
    /// Nothing has been asked.
    pub fn new(sums: &LockedSums, is_wanted: &Arc<AtomicBool>) -> Self {
        MemoryAsker {
            sums: Arc::clone(sums),
            is_wanted: Arc::clone(is_wanted),
            askings: HashMap::new(),
        }
    }

    /// Asks a program if that is due.
    pub fn ask(&mut self, member: &Member) {
        if !self.is_wanted.load(SeqCst) {
            return;
        }
        let place = member.feed.process;
        let asking = self.askings.entry(place).or_default();
        let is_due = asking.asked.is_none_or(|asked| asked.elapsed() >= INTERVAL);
        if !is_due || asking.is_asked.swap(true, SeqCst) {
            return;
        }
        asking.asked = Some(Instant::now());
        let done = Done(Arc::clone(&asking.is_asked));
        let sums = Arc::clone(&self.sums);
        let process = ProcessId {
            pid: member.program.pid,
            start: member.program.hello.start,
        };
        let asks = move || {
            let how = Look {
                with_objects: false,
                may_wake: false,
            };
            let found = look(process, how, |failure| message(process.pid, failure));
            let found = found.map_err(|error| match error {
                LookError::Failure(failure) => message(process.pid, &failure),
                LookError::Unreadable(error) => error.to_string(),
            });
            let mut sums = lock(&sums);
            sums.set_memory(place, found.as_ref().map_err(Clone::clone));
            sums.renew();
            drop(done);
        };
        // Without a thread nothing is known.
        let _ = thread::Builder::new().spawn(asks);
    }
}

//! What the memory of programs is of: each is looked at from time to time, while the user looks at the screen
//! of memory.

use super::askings::Askings;
use super::group::Member;
use crate::programs::words::message;
use rperf_session::process_id::ProcessId;
use rperf_watch::memory::{Look, LookError, look};
use rperf_watch::sums::{LockedSums, lock};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How often.
const INTERVAL: Duration = Duration::from_secs(2);

/// Asks the programs.
pub struct MemoryAsker {
    sums: LockedSums,
    askings: Askings,
}

impl MemoryAsker {
    /// Nothing has been asked. `is_wanted`: the user looks at memory.
    pub fn new(sums: &LockedSums, is_wanted: &Arc<AtomicBool>) -> Self {
        MemoryAsker {
            sums: Arc::clone(sums),
            askings: Askings::new(is_wanted),
        }
    }

    /// Asks a program if that is due.
    pub fn ask(&mut self, member: &Member) {
        let place = member.feed.process;
        let sums = Arc::clone(&self.sums);
        let process = ProcessId {
            pid: member.program.pid,
            start: member.program.hello.start,
        };
        self.askings.ask(place, INTERVAL, move || {
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
        });
    }
}

//! What threads are called and what they wait for, which the sums don't say: each program is asked
//! for its stacks from time to time, while the user looks at the threads.

use super::askings::Askings;
use super::group::Member;
use rperf_protocol::stacks::{Source, Stacks, Thread};
use rperf_session::process_id::ProcessId;
use rperf_watch::program::Program;
use rperf_watch::sums::{LockedSums, ThreadFacts, lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// How often.
const INTERVAL: Duration = Duration::from_secs(1);

/// From so many threads on, so much time for each passes in between: their stacks need the VM.
const PER_THREAD: Duration = Duration::from_millis(5);

/// Asks the programs.
pub struct Asker {
    sums: LockedSums,
    askings: Askings,
    /// How many threads the last answer of each process had.
    threads: HashMap<u32, Arc<AtomicUsize>>,
}

impl Asker {
    /// Nothing has been asked. `is_wanted`: the user looks at the threads.
    pub fn new(sums: &LockedSums, is_wanted: &Arc<AtomicBool>) -> Self {
        Asker {
            sums: Arc::clone(sums),
            askings: Askings::new(is_wanted),
            threads: HashMap::new(),
        }
    }

    /// Asks a program if that is due.
    pub fn ask(&mut self, member: &Member) {
        let process = member.feed.process;
        let threads = Arc::clone(self.threads.entry(process).or_default());
        let count = u32::try_from(threads.load(SeqCst)).unwrap_or(u32::MAX);
        let pause = INTERVAL.max(PER_THREAD.saturating_mul(count));
        let sums = Arc::clone(&self.sums);
        let (pid, start) = (member.program.pid, member.program.hello.start);
        self.askings.ask(process, pause, move || {
            if let Some(answer) = answer(pid, start) {
                threads.store(tell(&sums, process, &answer), SeqCst);
            }
        });
    }
}

/// `start`: when the process began, as another may have its number by now.
fn answer(pid: i32, start: u64) -> Option<Stacks<'static>> {
    let mut program = Program::connect(ProcessId::named(pid)).ok()?;
    let is_it = program.hello.start == start;
    is_it.then(|| program.stacks(false, false).ok())?
}

/// Returns how many threads there were.
fn tell(sums: &LockedSums, process: u32, answer: &Stacks<'_>) -> usize {
    let threads = answer.threads.iter();
    let mut sums = lock(sums);
    match answer.source {
        Source::Vm => {
            sums.set_facts(process, threads.map(|it| (it.profile_thread, facts(it))));
        }
        // The numbers of native threads are all that is known then.
        Source::System => sums.set_waits(process, threads.map(facts)),
    }
    sums.renew();
    answer.threads.len()
}

fn facts(thread: &Thread<'_>) -> ThreadFacts {
    ThreadFacts {
        name: (&*thread.name).into(),
        tid: thread.tid.and_then(|it| it.try_into().ok()).unwrap_or(0),
        waits_in: thread.waits_in.as_deref().unwrap_or_default().into(),
        age_ns: 0,
    }
}

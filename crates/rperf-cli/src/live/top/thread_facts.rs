//! What threads are called and what they wait for, which the sums don't say: each program is asked
//! for its stacks from time to time, on a thread and a connection of their own, while the user looks
//! at the threads. A program that waits isn't woken for that.

use super::group::Member;
use rperf_protocol::stacks::{Source, Stacks, Thread};
use rperf_session::process_id::ProcessId;
use rperf_watch::program::Program;
use rperf_watch::sums::{LockedSums, ThreadFacts, lock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How often.
const INTERVAL: Duration = Duration::from_secs(1);

/// From so many threads on, so much time for each passes in between: their stacks need the VM.
const PER_THREAD: Duration = Duration::from_millis(5);

/// What is asked for a program.
#[derive(Default)]
struct Asking {
    asked: Option<Instant>,
    state: Arc<State>,
}

/// What the thread that asks says.
#[derive(Default)]
struct State {
    /// An answer is under way.
    is_asked: AtomicBool,
    /// How many threads the last one had.
    threads: AtomicUsize,
}

/// However the thread ends that asks.
struct Done(Arc<State>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.is_asked.store(false, SeqCst);
    }
}

/// Asks the programs.
pub struct Asker {
    sums: LockedSums,
    /// The user looks at the threads.
    is_wanted: Arc<AtomicBool>,
    askings: HashMap<u32, Asking>,
}

impl Asker {
    /// Nothing has been asked.
    pub fn new(sums: &LockedSums, is_wanted: &Arc<AtomicBool>) -> Self {
        Asker {
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
        let process = member.feed.process;
        let asking = self.askings.entry(process).or_default();
        let threads = u32::try_from(asking.state.threads.load(SeqCst)).unwrap_or(u32::MAX);
        let pause = INTERVAL.max(PER_THREAD.saturating_mul(threads));
        let is_due = asking.asked.is_none_or(|asked| asked.elapsed() >= pause);
        if !is_due || asking.state.is_asked.swap(true, SeqCst) {
            return;
        }
        asking.asked = Some(Instant::now());
        let done = Done(Arc::clone(&asking.state));
        let sums = Arc::clone(&self.sums);
        let (pid, start) = (member.program.pid, member.program.hello.start);
        let asks = move || {
            if let Some(answer) = answer(pid, start) {
                let count = tell(&sums, process, &answer);
                done.0.threads.store(count, SeqCst);
            }
        };
        // Without a thread nothing is known.
        let _ = thread::Builder::new().spawn(asks);
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

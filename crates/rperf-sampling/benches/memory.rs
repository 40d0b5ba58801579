//! Memory of a session under ten million samples of 2,000 stacks: it must not
//! grow after the first million. `cargo bench -p rperf-sampling --bench memory`;
//! with `--smoke`, a hundred thousand samples.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use rperf_sampling::{
    Accounting, DEFAULT_MAX_NODES, Mode, NO_OVERHEAD_LIMIT, Position, SampleStack, Session,
    SessionConfig, TimerKind, Values,
};
use rperf_vm::{FrameWord, LastStack, Stack, clock};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

const STACKS: usize = 2_000;
const DEPTH: usize = 50;
const STEPS: usize = 10;
const THREADS: usize = 8;
/// Samples between two pauses, in which the worker can follow.
const BURST: usize = 4_096;

/// Stacks, one after the other, all different in their upper half.
struct Stacks {
    all: Vec<Vec<FrameWord>>,
    next: usize,
    /// The time, in ns.
    now: u64,
}

impl Stacks {
    fn new() -> Self {
        let frame = |stack: usize, level: usize| {
            let shared = level >= DEPTH / 2;
            1 + level + if shared { 0 } else { (stack + 1) * DEPTH }
        };
        let all = (0..STACKS).map(|stack| (0..DEPTH).map(|level| frame(stack, level)).collect());
        Self {
            all: all.collect(),
            next: 0,
            now: 0,
        }
    }

    fn next(&mut self) -> Stack<'_> {
        self.next = (self.next + 7) % STACKS;
        Stack {
            frames: &self.all[self.next],
            lines: &[],
            cut: false,
        }
    }
}

/// A thread that runs all the time.
struct Running {
    accounting: Accounting,
    last: LastStack,
}

fn main() -> ExitCode {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let per_step = if smoke { 10_000 } else { 1_000_000 };
    let config = SessionConfig {
        mode: Mode::Wall,
        blames: false,
        judges: false,
        frequency: 1000,
        max_overhead: NO_OVERHEAD_LIMIT,
        max_nodes: DEFAULT_MAX_NODES,
        timer: TimerKind::Sleep,
        aggregate: true,
    };
    let mut session = match Session::start(config, || ()) {
        Ok(session) => session,
        Err(error) => {
            eprintln!("memory: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut stacks = Stacks::new();
    let mut threads: Vec<Running> = (0..THREADS).map(|_| start_thread(&mut session)).collect();
    println!(
        "{:>11}  {:>11}  {:>11}",
        "samples", "session kB", "process kB"
    );
    let mut after_first = (0, 0);
    let mut at_end = (0, 0);
    for step in 1..=STEPS {
        record(&mut session, &mut stacks, &mut threads, per_step);
        at_end = (session.memory() / 1024, resident_kb());
        if step == 1 {
            after_first = at_end;
        }
        println!(
            "{:>11}  {:>11}  {:>11}",
            step * per_step,
            at_end.0,
            at_end.1
        );
    }
    println!(
        "growth after the first {per_step}: session {} kB, process {} kB",
        at_end.0 as i64 - after_first.0 as i64,
        at_end.1 as i64 - after_first.1 as i64
    );
    match session
        .stop(clock::monotonic_ns())
        .and_then(|(taken, _)| taken.complete())
    {
        Ok((snapshot, _)) if snapshot.counted.dropped == Values::default() => ExitCode::SUCCESS,
        Ok((snapshot, _)) => {
            eprintln!(
                "memory: {} samples were dropped",
                snapshot.counted.dropped.count
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("memory: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start_thread(session: &mut Session) -> Running {
    let mut accounting = session.new_thread(0);
    accounting.begin_running(0);
    Running {
        accounting,
        last: LastStack::default(),
    }
}

/// Each tick finds each thread at the next stack.
fn record(session: &mut Session, stacks: &mut Stacks, threads: &mut [Running], samples: usize) {
    for number in 0..samples {
        let Running { accounting, last } = &mut threads[number % THREADS];
        stacks.now += 1_000_000;
        let now = stacks.now;
        let dues = accounting.sample(now, now, 0, || now);
        let position = Position {
            stack: Some(SampleStack::Frames(stacks.next())),
            last,
            labels: None,
        };
        session.record(now, accounting, dues, position);
        if number % BURST == BURST - 1 {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Resident memory of this process, or 0 where it can't be told.
fn resident_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

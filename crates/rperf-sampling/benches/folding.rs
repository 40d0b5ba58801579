//! What it costs to fold a full call tree: CPU time and memory of a session whose stacks are nearly
//! all different, with several limits. `cargo bench -p rperf-sampling --bench folding`; with
//! `--smoke`, a tenth of the samples.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use rperf_model::Profile;
use rperf_sampling::{
    Accounting, Mode, NO_OVERHEAD_LIMIT, Position, SampleStack, Session, SessionConfig, TimerKind,
};
use rperf_vm::{FrameWord, LastStack, ResolvedFrame, Stack, clock};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const METHODS: u64 = 2_000;
const DEPTHS: std::ops::Range<u64> = 20..50;
const SAMPLES: usize = 150_000;
/// Nodes at most: with the last one there is room for all.
const LIMITS: [u32; 4] = [10_000, 100_000, 1_000_000, u32::MAX];
/// Samples between two looks whether the epoch is over, and the worker has time.
const BURST: usize = 256;

/// Stacks of methods that call each other at random.
struct Stacks {
    state: u64,
    frames: Vec<FrameWord>,
}

impl Stacks {
    fn below(&mut self, limit: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.state >> 33) % limit
    }

    /// The leaf comes first; one method is at the root of all.
    fn next(&mut self) -> Stack<'_> {
        let depth = DEPTHS.start + self.below(DEPTHS.end - DEPTHS.start);
        self.frames.clear();
        for _ in 0..depth {
            let frame = 2 + self.below(METHODS) as FrameWord;
            self.frames.push(frame);
        }
        self.frames.push(1);
        Stack {
            frames: &self.frames,
            lines: &[],
            cut: false,
        }
    }
}

/// A session under these stacks.
struct Run {
    session: Session,
    accounting: Accounting,
    last: LastStack,
    peak: usize,
}

impl Run {
    fn start(max_nodes: u32) -> Result<Self, std::io::Error> {
        let config = SessionConfig {
            mode: Mode::Wall,
            blames: false,
            judges: false,
            frequency: 10_000,
            max_overhead: NO_OVERHEAD_LIMIT,
            max_nodes,
            timer: TimerKind::Sleep,
            aggregate: true,
        };
        let mut session = Session::start(config, || ())?;
        let mut accounting = session.new_thread(0);
        accounting.begin_running(0);
        Ok(Self {
            session,
            accounting,
            last: LastStack::default(),
            peak: 0,
        })
    }

    fn record(&mut self, samples: usize) {
        let mut stacks = Stacks {
            state: 1,
            frames: Vec::new(),
        };
        for number in 1..=samples {
            let now = number as u64 * 100_000;
            let dues = self.accounting.sample(now, now, 0, || now);
            let position = Position {
                stack: Some(SampleStack::Frames(stacks.next())),
                last: &mut self.last,
                labels: None,
            };
            self.session
                .record(now, &mut self.accounting, dues, position);
            if number % BURST == 0 {
                self.rest();
            }
        }
    }

    fn rest(&mut self) {
        if self.session.is_epoch_over(clock::monotonic_ns()) {
            self.session.begin_epoch_end();
            self.accounting.forget_points();
            self.last.keep(0);
            while let Some(frame) = self.session.next_unnamed() {
                self.session.name(frame, name(frame));
            }
            self.session.end_epoch_if_named(1);
        }
        thread::sleep(Duration::from_millis(2));
        self.peak = self.peak.max(self.session.memory());
    }

    fn stop(self, now: u64) -> Option<Profile> {
        let (taken, frames) = self.session.stop(now).ok()?;
        let (snapshot, nodes) = taken.complete().ok()?;
        let unnamed = frames.unnamed().iter();
        let rest = unnamed.map(|&frame| Arc::new(name(frame)));
        let names: Vec<_> = frames.names().iter().cloned().chain(rest).collect();
        Some(snapshot.into_profile(&nodes, &names, String::new(), Vec::new()))
    }
}

fn name(frame: FrameWord) -> ResolvedFrame {
    ResolvedFrame {
        name: format!("method{frame}"),
        path: "app.rb".into(),
        first_line: 1,
    }
}

fn main() -> ExitCode {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let samples = if smoke { SAMPLES / 10 } else { SAMPLES };
    println!("{samples} samples of {METHODS} methods that call each other at random");
    println!(
        "{:>9}  {:>9}  {:>6}  {:>8}  {:>8}  {:>10}  {:>8}",
        "limit", "nodes", "folded", "us CPU", "elapsed", "session MB", "peak MB"
    );
    for max_nodes in LIMITS {
        let (began, cpu) = (Instant::now(), clock::process_cpu_ns());
        let profile = Run::start(max_nodes).ok().and_then(|mut run| {
            run.record(samples);
            let peak = run.peak;
            run.stop(samples as u64 * 100_000)
                .map(|profile| (profile, peak))
        });
        let Some((profile, peak)) = profile else {
            eprintln!("folding: no profile");
            return ExitCode::FAILURE;
        };
        let whole = profile.sum(profile.schema.default_column());
        let limit = match max_nodes {
            u32::MAX => "none".to_string(),
            number => number.to_string(),
        };
        println!(
            "{limit:>9}  {:>9}  {:>5.1}%  {:>8.1}  {:>7.1}s  {:>10}  {:>8}",
            profile.tree.len(),
            profile.folded().ns as f64 / whole as f64 * 100.0,
            (clock::process_cpu_ns() - cpu) as f64 / 1e3 / samples as f64,
            began.elapsed().as_secs_f64(),
            peak >> 20,
            peak_kb() >> 10,
        );
    }
    ExitCode::SUCCESS
}

/// Largest resident memory of this process so far, or 0 where it can't be told.
fn peak_kb() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

//! The budget in a simulated program of many threads that sleep: how many stacks are taken,
//! and whether each stack has its share whatever the intervals do.

use super::*;
use crate::accounting::{Accounting, Dues, SamplePoint};
use crate::{Mode, NO_OVERHEAD_LIMIT};
use rperf_model::{LabelSetId, NodeId, State};
use rperf_vm::Dither;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const INTERVAL: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn budget() -> Budget {
    Budget::new(INTERVAL, NO_OVERHEAD_LIMIT, 0, 0)
}

/// What a thread does next: sleeps so long at this stack. `None`: it ends.
type Sleep = Option<(usize, u64)>;

/// Threads that sleep, and work for a moment in between.
struct Program {
    budget: Budget,
    /// The budget says how long the intervals are, and not the test.
    adapts: bool,
    threads: Vec<Sleeper>,
    /// Who wakes up when.
    wake_ups: BinaryHeap<Reverse<(u64, usize)>>,
    /// Time of ended threads without a stack, and what is left of it in the end.
    unattributed: u64,
    stacks: u64,
    /// Recorded and true time at each stack, of all threads.
    seen: [u64; 8],
    truth: [u64; 8],
}

struct Sleeper {
    accounting: Accounting,
    at: usize,
    recorded: u64,
    slept: u64,
}

impl Program {
    fn new() -> Self {
        Self {
            budget: budget(),
            adapts: true,
            threads: Vec::new(),
            wake_ups: BinaryHeap::new(),
            unattributed: 0,
            stacks: 0,
            seen: [0; 8],
            truth: [0; 8],
        }
    }

    fn add(&mut self, now: u64, at: usize, length: u64) {
        let row = self.threads.len();
        let seq = row as u32 + 1;
        let mut accounting =
            Accounting::new(seq, Mode::Wall, self.budget.pace(), 0, u64::from(seq) << 32);
        accounting.begin_off_gvl(now);
        self.threads.push(Sleeper {
            accounting,
            at,
            recorded: 0,
            slept: length,
        });
        self.truth[at] += length;
        self.wake_ups.push(Reverse((now + length, row)));
    }

    /// Runs up to `end`. `next` is asked what a thread does, by its number and the time, and
    /// may add threads.
    fn run(&mut self, end: u64, mut next: impl FnMut(&mut Self, usize, u64) -> Sleep) {
        while let Some(&Reverse((now, row))) = self.wake_ups.peek()
            && now < end
        {
            self.wake_ups.pop();
            let dues = self.threads[row].accounting.resumed(now, now, || 0);
            self.record(row, now, dues.unwrap_or_default());
            self.threads[row].accounting.suspended(now);
            match next(self, row, now) {
                Some((at, length)) => {
                    let thread = &mut self.threads[row];
                    thread.at = at;
                    thread.slept += length;
                    self.truth[at] += length;
                    self.wake_ups.push(Reverse((now + length, row)));
                }
                None => {
                    let dues = self.threads[row].accounting.finish(None);
                    self.record_remainders(row, dues, None);
                }
            }
        }
    }

    fn record(&mut self, row: usize, now: u64, dues: Dues) {
        let is_off_gvl = dues.is_off_gvl();
        let at = self.threads[row].at;
        self.record_remainders(row, dues, Some(at));
        if is_off_gvl {
            self.stacks += 1;
        }
        if is_off_gvl && self.adapts {
            let no_limit = || panic!("there is no limit");
            let stack = StackCounts::off_gvl(1);
            self.budget.count(now, stack, 0, no_limit);
        }
    }

    /// Records `dues` as `Recording` does: samples at the stack of the moment, remainders at the
    /// last one.
    fn record_remainders(&mut self, row: usize, dues: Dues, at: Option<usize>) {
        let thread = &mut self.threads[row];
        for due in dues {
            let known = thread.accounting.last_point_of(&due);
            let known = known.filter(|_| due.is_remainder());
            let known = known.map(|point| point.node.0 as usize);
            thread.recorded += due.values.times.wall_ns;
            match known.or(at) {
                Some(stack) => {
                    self.seen[stack] += due.values.times.wall_ns;
                    let point = SamplePoint {
                        node: NodeId(stack as u32),
                        labels: LabelSetId::default(),
                        request: rperf_vm::RequestNumber::NONE,
                        gc: None,
                    };
                    if known.is_none() && thread.accounting.recorded_at(point, &due) {
                        self.seen[stack] += std::mem::take(&mut self.unattributed);
                    }
                }
                None => self.unattributed += due.values.times.wall_ns,
            }
        }
    }

    /// The session stops at `now`: every nanosecond of each thread is recorded.
    fn stop(&mut self, now: u64) {
        let asleep = std::mem::take(&mut self.wake_ups);
        for Reverse((wake_up, row)) in asleep {
            let dues = self.threads[row].accounting.flush(now, 0, None);
            let at = self.threads[row].at;
            self.record_remainders(row, dues, Some(at));
            self.threads[row].slept -= wake_up - now;
            self.truth[at] -= wake_up - now;
        }
        for thread in &self.threads {
            assert_eq!(thread.recorded, thread.slept);
        }
    }

    /// The largest error of a stack's share.
    fn error(&self) -> f64 {
        let of = |sums: &[u64; 8], row: usize| sums[row] as f64 / sums.iter().sum::<u64>() as f64;
        let errors = (0..8).map(|row| (of(&self.seen, row) - of(&self.truth, row)).abs());
        errors.fold(0.0, f64::max)
    }
}

/// Threads of four kinds, each of which sleeps in turn at one stack and at another.
const KINDS: [[(usize, u64); 2]; 4] = [
    [(0, 10_000), (1, 990_000)],
    [(2, 300_000), (3, 700_000)],
    [(4, 150_000), (5, 5_000_000)],
    [(6, 800_000), (7, 90_000_000)],
];

#[test]
fn shares_are_right_and_stacks_few_at_any_number_of_threads() {
    for (threads, seconds, most) in [
        (1, 40, 0.02),
        (3, 20, 0.02),
        (200, 5, 0.015),
        (1_000, 2, 0.02),
    ] {
        let mut program = Program::new();
        let mut turns = vec![0; threads];
        for row in 0..threads {
            let (at, length) = KINDS[row % 4][0];
            program.add(row as u64 * 1_000, at, length);
        }
        program.run(seconds * SECOND, |_, row, _| {
            turns[row] ^= 1;
            Some(KINDS[row % 4][turns[row]])
        });
        program.stop(seconds * SECOND);
        let error = program.error();
        assert!(error < most, "{threads} threads: {error}");
        let ticks = seconds * SECOND / INTERVAL;
        let per_tick = program.stacks as f64 / ticks as f64;
        // What a start takes, until the intervals are long enough, comes on top.
        assert!(
            per_tick < 1.25 * STACKS_PER_INTERVAL + 0.5,
            "{per_tick} stacks"
        );
        if threads <= 3 {
            let longest = program.budget.longest().off_gvl_ns;
            assert_eq!(longest, INTERVAL, "{threads} threads");
        }
    }
}

#[test]
fn shares_are_right_where_the_load_comes_and_goes() {
    // All threads sleep in short pieces at one stack for a while, which lengthens the
    // intervals, and then for as long at another one, while two go on as before.
    for phase in [SECOND / 10, SECOND] {
        let mut program = Program::new();
        for row in 0..100 {
            program.add(row * 3_000, 1, 1_000_000);
        }
        program.run(10 * SECOND, |_, row, now| {
            let left = phase - now % phase;
            let storm = now / phase % 2 == 0;
            Some(match row {
                0..2 => (2, 900_000),
                _ if storm => (0, left.min(1_000_000)),
                _ => (1, left),
            })
        });
        program.stop(10 * SECOND);
        let longest = program.budget.longest().off_gvl_ns;
        assert!(longest > 20 * INTERVAL, "{longest}");
        assert!(program.error() < 0.02, "{phase}: {}", program.error());
    }
}

#[test]
fn intervals_are_short_again_when_many_threads_have_gone() {
    let mut program = Program::new();
    for row in 0..200 {
        program.add(row * 3_000, 0, 1_000_000);
    }
    let mut longest = 0;
    program.run(4 * SECOND, |program, row, now| {
        let interval = program.budget.pace().off_gvl();
        longest = longest.max(interval);
        assert!(now < 3 * SECOND || interval == INTERVAL, "{interval}");
        (row < 2 || now < SECOND).then_some((0, 1_000_000))
    });
    assert!(longest > 40 * INTERVAL);
}

#[test]
fn short_threads_in_numbers_share_few_stacks_rightly() {
    let mut program = Program::new();
    program.add(0, 3, 500_000);
    // 20,000 threads a second, which sleep 1 ms at one stack and 3 ms at another.
    let mut turns = Vec::new();
    program.run(5 * SECOND, |program, row, now| {
        turns.resize(program.threads.len(), 0);
        if row == 0 {
            for _ in 0..10 {
                program.add(now, 0, 1_000_000);
            }
            return Some((3, 500_000));
        }
        turns[row] += 1;
        (turns[row] == 1).then_some((1, 3_000_000))
    });
    program.stop(5 * SECOND);
    assert!(program.error() < 0.015, "{}", program.error());
    assert!(program.stacks < 5_000 * 6, "{}", program.stacks);
}

#[test]
fn shares_are_right_while_intervals_change_at_random() {
    let mut program = Program::new();
    program.adapts = false;
    let mut dither = Dither::new(3);
    for row in 0..40 {
        let (at, length) = KINDS[row % 4][0];
        program.add(row as u64, at, length);
    }
    let mut turns = [0; 40];
    let mut change_at = 0;
    program.run(30 * SECOND, |program, row, now| {
        if now >= change_at {
            change_at = now + dither.memoryless_gap(20_000_000);
            let interval = INTERVAL + dither.memoryless_gap(10 * INTERVAL);
            program.budget.pace().set(INTERVAL, interval);
        }
        turns[row] ^= 1;
        Some(KINDS[row % 4][turns[row]])
    });
    program.stop(30 * SECOND);
    assert!(program.error() < 0.01, "{}", program.error());
}

#[test]
fn a_short_session_has_time_of_every_thread() {
    let mut program = Program::new();
    for row in 0..200 {
        program.add(row * 1_000, row as usize % 8, 1_000_000);
    }
    program.run(SECOND, |_, row, _| Some((row % 8, 1_000_000)));
    program.stop(SECOND);
    assert!(program.error() < 1e-9);
    for thread in &program.threads {
        assert!(thread.accounting.last_point(State::GvlBlocked).is_some());
    }
}

#[test]
fn sampling_that_costs_too_much_becomes_rarer_and_is_as_often_as_asked_for_again() {
    let mut budget = Budget::new(INTERVAL, 5, 0, 0);
    let (mut now, mut cpu) = (0, 0);
    // A sample costs a tenth of an interval, later a hundredth.
    for (cost, expected) in [(100_000, 2_000_000), (10_000, INTERVAL)] {
        for _ in 0..20_000 {
            let gap = budget.pace().tick();
            now += gap;
            cpu += gap;
            budget.count(now, StackCounts::running(1), cost, || cpu);
        }
        let interval = budget.pace().tick();
        let range = expected..=expected * 4 / 3;
        assert!(range.contains(&interval), "{interval}");
        assert_eq!(budget.pace().off_gvl(), interval);
    }
    assert!(budget.longest().tick_ns >= 2_000_000);
    budget.forget_longest();
    assert_eq!(budget.longest().tick_ns, INTERVAL);
}

#[test]
fn what_other_processes_take_from_sampling_is_not_its_cost() {
    let mut budget = Budget::new(INTERVAL, 5, 0, 0);
    for tick in 1..20_000 {
        // Every hundredth sample is preempted for 20 ms.
        let cost = if tick % 100 == 0 { 20_000_000 } else { 10_000 };
        let now = tick * INTERVAL;
        budget.count(now, StackCounts::running(1), cost, || now);
    }
    assert_eq!(budget.pace().tick(), INTERVAL);
}

#[test]
fn what_an_idle_program_costs_is_not_judged() {
    let mut budget = Budget::new(INTERVAL, 5, 0, 0);
    for round in 1..1_000 {
        // One CPU second in a thousand, of which sampling takes half.
        let now = round * SECOND / 50;
        budget.count(now, StackCounts::running(1), 10_000, || round * 20_000);
    }
    assert_eq!(budget.pace().tick(), INTERVAL);
}

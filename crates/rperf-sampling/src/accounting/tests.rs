//! The accounting against a simulated VM: threads that take turns at random, with
//! collections, late callbacks and missing events, and the invariants that must
//! hold whatever happens.

mod began;
mod blame;
mod collections;
mod recorded;
mod replay;
mod without_gvl;

use super::*;
use crate::timer::calm::Calm;
use proptest::prelude::*;
use recorded::Recorded;
use rperf_vm::{Dither, GcTime, GcWork, LabelSet};
use std::collections::HashMap;

const INTERVAL: u64 = 1_000_000;

fn pace() -> Arc<Pace> {
    Arc::new(Pace::new(INTERVAL))
}

/// What a simulated thread does next, each for so many ns.
#[derive(Debug, Clone)]
enum Step {
    Run(u64),
    /// Off the GVL, of which so much after READY; CPU time used meanwhile, and what the hook takes
    /// that reads the CPU clock as it ends.
    Off {
        blocked: u64,
        wait: u64,
        cpu: u64,
        hook: u64,
    },
    /// Off the GVL and back without RESUMED, as an interrupted sleep.
    OffUnnoticed(u64),
    /// A tick that long before the callback runs, while running.
    Tick {
        before: u64,
    },
    /// A tick from before the thread got the GVL.
    StaleTick,
    /// A collection, of which so much goes to another process.
    Collect {
        marking: u64,
        sweeping: u64,
        preempted: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![
        0u64..50_000,
        100_000u64..3_000_000,
        Just(1_000_000),
        Just(50_000_000)
    ];
    prop_oneof![
        3 => length.clone().prop_map(Step::Run),
        3 => (length.clone(), length.clone(), 0u64..2_000_000, 0u64..20_000)
            .prop_map(|(blocked, wait, cpu, hook)| Step::Off { blocked, wait, cpu: cpu.min(blocked), hook }),
        1 => length.clone().prop_map(Step::OffUnnoticed),
        4 => (0u64..400_000).prop_map(|before| Step::Tick { before }),
        1 => Just(Step::StaleTick),
        2 => (length.clone(), length, 0u64..4_000_000).prop_map(|(marking, sweeping, preempted)| {
            Step::Collect { marking, sweeping, preempted }
        }),
    ]
}

/// A simulated thread with the truth about it.
struct Simulated {
    accounting: Accounting,
    now: u64,
    cpu: u64,
    resumed: u64,
    /// CPU time in collections.
    collecting_cpu: u64,
    wall: HashMap<&'static str, u64>,
}

impl Simulated {
    fn new(seq: u32, mode: Mode, start: u64, seed: u64) -> Self {
        let mut accounting = Accounting::new(seq, mode, &pace(), 7_000, seed);
        accounting.begin_running(start);
        Self {
            accounting,
            now: start,
            cpu: 7_000,
            resumed: start,
            collecting_cpu: 0,
            wall: HashMap::new(),
        }
    }

    fn pass(&mut self, what: &'static str, wall: u64, cpu: u64) {
        self.now += wall;
        self.cpu += cpu;
        *self.wall.entry(what).or_default() += wall;
    }

    fn truth(&self, what: &str) -> u64 {
        self.wall.get(what).copied().unwrap_or(0)
    }

    /// The sampling callback for the tick at `tick` runs now.
    fn sample(&mut self, tick: u64, recorded: &mut Recorded) {
        let cpu = self.cpu;
        let dues = self.accounting.sample(self.now, tick, 0, || cpu);
        recorded.record(&mut self.accounting, dues);
    }

    fn resume(&mut self, ready: u64, hook: u64, recorded: &mut Recorded) {
        self.resumed = self.now;
        let (cpu, mut was_read) = (self.cpu + hook, false);
        let read = || {
            was_read = true;
            cpu
        };
        let dues = self.accounting.resumed(self.now, ready, read);
        if was_read {
            self.pass("running", hook, hook);
            self.accounting.clock_was_read(self.now);
            if self.accounting.mode == Mode::Cpu {
                self.resumed = self.now;
            }
        }
        recorded.record(&mut self.accounting, dues.unwrap_or_default());
    }

    fn flush(&mut self, recorded: &mut Recorded) {
        let dues = self.accounting.flush(self.now, 0, Some(self.cpu));
        recorded.record(&mut self.accounting, dues);
    }

    fn pause(&mut self, cpu: Option<u64>, recorded: &mut Recorded) {
        let dues = self.accounting.pause(self.now, 0, || cpu);
        recorded.record(&mut self.accounting, dues);
    }

    fn apply(&mut self, step: &Step, recorded: &mut Recorded) {
        match *step {
            Step::Run(length) => self.pass("running", length, length),
            Step::Off {
                blocked,
                wait,
                cpu,
                hook,
            } => {
                self.accounting.suspended(self.now);
                self.pass("blocked", blocked, cpu);
                let ready = self.now;
                self.pass("wait", wait, 0);
                self.resume(ready, hook, recorded);
            }
            Step::OffUnnoticed(length) => {
                self.accounting.suspended(self.now);
                self.pass("blocked", length, 0);
                // The callback finds it running.
                self.sample(self.now, recorded);
                self.resumed = self.now;
            }
            Step::Tick { before } => {
                let tick = self.now.saturating_sub(before).max(self.resumed);
                self.sample(tick, recorded);
            }
            Step::StaleTick => {
                let tick = self.resumed.saturating_sub(1);
                let before = recorded.samples.len();
                self.sample(tick, recorded);
                assert_eq!(
                    recorded.samples.len(),
                    before,
                    "a stale tick makes no sample"
                );
            }
            Step::Collect {
                marking,
                sweeping,
                preempted,
            } => {
                let (enter, cpu) = (self.now, self.cpu);
                let marking_cpu = marking.saturating_sub(preempted);
                self.pass("marking", marking, marking_cpu);
                self.pass("sweeping", sweeping, sweeping);
                self.collecting_cpu += self.cpu - cpu;
                let work = GcWork {
                    enter_ns: enter,
                    exit_ns: self.now,
                    cpu_ns: self.cpu - cpu,
                    marking: GcTime {
                        wall_ns: marking,
                        cpu_ns: marking_cpu,
                    },
                    tick_before_ns: 0,
                    is_first: false,
                    cause: None,
                };
                let dues = self.accounting.collected(work, enter + marking / 2);
                recorded.record(&mut self.accounting, dues);
            }
        }
    }
}

proptest! {
    #[test]
    fn in_wall_mode_every_nanosecond_of_a_thread_is_counted_once_in_its_state(
        steps in prop::collection::vec(step(), 1..200), seed: u64, flushes in 1usize..4
    ) {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, Mode::Wall, 5_000_000, seed);
        for part in steps.chunks(steps.len().div_ceil(flushes)) {
            part.iter().for_each(|step| thread.apply(step, &mut recorded));
            thread.flush(&mut recorded);
        }
        let state = |wanted| recorded.sum(|row| row.state == wanted).wall_ns;
        prop_assert_eq!(state(State::Running), thread.truth("running"));
        prop_assert_eq!(state(State::GvlBlocked), thread.truth("blocked"));
        prop_assert_eq!(state(State::GvlWait), thread.truth("wait"));
        prop_assert_eq!(state(State::GcMarking), thread.truth("marking"));
        prop_assert_eq!(state(State::GcSweeping), thread.truth("sweeping"));
        prop_assert_eq!(recorded.sum_of_thread(1).wall_ns, thread.now - 5_000_000);
        // CPU time beside it: all that was used, each nanosecond once.
        prop_assert_eq!(recorded.sum_of_thread(1).cpu_ns, thread.cpu - 7_000);
        let collecting = recorded.sum(|row| row.state >= State::GcMarking);
        prop_assert_eq!(collecting.cpu_ns, thread.collecting_cpu);
    }

    #[test]
    fn in_cpu_mode_the_weights_add_up_to_the_cpu_time(
        steps in prop::collection::vec(step(), 1..200), seed: u64
    ) {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, Mode::Cpu, 5_000_000, seed);
        steps.iter().for_each(|step| thread.apply(step, &mut recorded));
        thread.flush(&mut recorded);
        prop_assert_eq!(recorded.sum_of_thread(1).cpu_ns, thread.cpu - 7_000);
        let collecting = recorded.sum(|row| row.state >= State::GcMarking);
        prop_assert_eq!(collecting.cpu_ns, thread.collecting_cpu);
        let waiting = |state| matches!(state, State::GvlBlocked | State::GvlWait);
        prop_assert!(recorded.sum(|row| waiting(row.state)).is_zero());
    }

    #[test]
    fn between_sections_no_time_counts_and_in_them_every_nanosecond_does(
        steps in prop::collection::vec(step(), 1..200), seed: u64, sections in 1usize..20,
        mode in prop_oneof![Just(Mode::Wall), Just(Mode::Cpu)], asleep: bool
    ) {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, mode, 5_000_000, seed);
        let mut outside = (5_000_000, 7_000);
        let gap = 30_000_000;
        for section in steps.chunks(steps.len().div_ceil(sections)) {
            section.iter().for_each(|step| thread.apply(step, &mut recorded));
            if asleep {
                thread.accounting.suspended(thread.now);
                thread.pass("blocked", 1_000, 0);
            }
            thread.pause(Some(thread.cpu), &mut recorded);
            thread.now += gap;
            thread.cpu += gap / 2;
            outside = (outside.0 + gap, outside.1 + gap / 2);
            thread.accounting.moved_to_native_thread(thread.cpu);
            thread.accounting.begin_running(thread.now);
            thread.resumed = thread.now;
        }
        thread.pause(Some(thread.cpu), &mut recorded);
        let dues = thread.accounting.flush(thread.now + gap, 0, None);
        recorded.record(&mut thread.accounting, dues);
        let (seen, used) = (recorded.sum_of_thread(1), thread.cpu - outside.1);
        // In wall mode the clock of a thread that did not run isn't read.
        prop_assert!(seen.cpu_ns == used || (asleep && mode == Mode::Wall && seen.cpu_ns < used));
        if mode == Mode::Wall {
            prop_assert_eq!(seen.wall_ns, thread.now - outside.0);
        }
    }

    #[test]
    fn a_thread_that_ends_leaves_its_time_to_its_stacks_or_to_the_unattributed(
        steps in prop::collection::vec(step(), 0..40), seed: u64, mode in prop_oneof![Just(Mode::Wall), Just(Mode::Cpu)]
    ) {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, mode, 1, seed);
        steps.iter().for_each(|step| thread.apply(step, &mut recorded));
        thread.accounting.suspended(thread.now);
        recorded.finish(&mut thread.accounting, thread.cpu);
        let mut all = recorded.sum_of_thread(1);
        all.add(recorded.unattributed());
        prop_assert_eq!(all.cpu_ns, thread.cpu - 7_000);
        if mode == Mode::Wall {
            prop_assert_eq!(all.wall_ns, thread.now - 1);
        }
        // The next thread's first sample takes it over, under no thread's name.
        let unattributed = recorded.recording.unattributed[State::Running as usize];
        let mut next = Simulated::new(2, mode, thread.now, seed);
        next.apply(&Step::Run(1_000_000), &mut recorded);
        next.apply(&Step::Tick { before: 0 }, &mut recorded);
        prop_assert_eq!(recorded.values(|row| row.thread == UNATTRIBUTED && row.state == State::Running), unattributed);
        prop_assert!(recorded.recording.unattributed[State::Running as usize].is_zero());
    }

    #[test]
    fn backtraces_are_bounded_by_time_whatever_the_number_of_switches(seed: u64, length in 500u64..20_000) {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, Mode::Wall, 1, seed);
        let switch = Step::Off { blocked: length, wait: length, cpu: 0, hook: 0 };
        for _ in 0..10_000 {
            thread.apply(&switch, &mut recorded);
            thread.apply(&Step::Run(length), &mut recorded);
        }
        // At most one per half interval (the shortest gap) and state.
        prop_assert!(recorded.captures <= 2 * (10_000 * length / (INTERVAL / 2) + 1));
    }
}

/// Runs `slices` of (stack, length) in turn between sleeps, with ticks as the
/// timer makes them and callbacks `late` after each; returns stack 1's share of
/// the running time. `stops`: the timer is stopped for each sleep; else a tick brings it to rest.
fn share_of_first(slices: &[(u32, u64)], sleep: u64, late: u64, stops: bool) -> f64 {
    let mut recorded = Recorded::default();
    let mut schedule = crate::timer::sources::schedule::Schedule::new(pace(), 99);
    let mut thread = Simulated::new(1, Mode::Wall, 1_000, 3);
    let mut next_tick = thread.now + schedule.gap(true);
    let (mut released, mut calm) = (false, Calm::COMPLETE);
    for _ in 0..40_000 {
        for &(stack, length) in slices {
            let end = thread.now + length;
            recorded.stack = stack;
            while next_tick < end {
                if next_tick >= thread.resumed {
                    let at = (next_tick + late).clamp(thread.now, end);
                    thread.apply(&Step::Run(at - thread.now), &mut recorded);
                    thread.sample(next_tick, &mut recorded);
                }
                calm = calm.after_tick(std::mem::take(&mut released));
                next_tick += schedule.gap(calm.in_slices());
            }
            thread.apply(&Step::Run(end - thread.now), &mut recorded);
        }
        if sleep > 0 {
            let left = next_tick - thread.now;
            thread.apply(
                &Step::Off {
                    blocked: sleep,
                    wait: 0,
                    cpu: 0,
                    hook: 0,
                },
                &mut recorded,
            );
            released = true;
            if stops && left > 0 {
                next_tick = thread.now + left;
            } else if next_tick < thread.now {
                next_tick = thread.now + schedule.gap(true);
            }
        }
    }
    let running = |stack| recorded.sum(|row| row.stack == stack && row.state == State::Running);
    running(1).wall_ns as f64 / (running(1).wall_ns + running(2).wall_ns) as f64
}

#[test]
fn shares_of_running_time_are_right_for_patterns_in_step_with_the_interval() {
    for (slices, sleep, truth) in [
        (&[(1, 44_000), (2, 956_000)][..], 0, 0.044),
        (&[(1, 300_000), (2, 700_000)][..], 0, 0.3),
        (&[(1, 100_000), (2, 100_000)][..], 800_000, 0.5),
        (&[(1, 75_000), (2, 225_000)][..], 5_000_000, 0.25),
        (&[(1, 1_000_000), (2, 4_000_000)][..], 20_000_000, 0.2),
        (&[(1, 1_000_000), (2, 9_000_000)][..], 300_000, 0.1),
    ] {
        for stops in [true, false] {
            let share = share_of_first(slices, sleep, 0, stops);
            assert!(
                (share - truth).abs() < 0.015,
                "{slices:?}, {stops}: truth {truth}, seen {share:.4}"
            );
        }
    }
}

#[test]
fn a_late_callback_gives_no_time_to_the_stack_that_runs_it() {
    // The callback always comes 20 us after the tick, often in the other stack.
    let share = share_of_first(&[(1, 500_000), (2, 500_000)], 0, 20_000, true);
    assert!((share - 0.5).abs() < 0.03, "seen {share:.4}");
}

#[test]
fn a_second_callback_for_the_same_tick_makes_no_second_sample() {
    let mut recorded = Recorded::at(1);
    let mut thread = Simulated::new(1, Mode::Wall, 1, 3);
    thread.apply(&Step::Run(2_000_000), &mut recorded);
    let tick = thread.now;
    thread.sample(tick, &mut recorded);
    thread.apply(&Step::Run(10), &mut recorded);
    thread.sample(tick, &mut recorded);
    assert_eq!(recorded.captures, 1);
}

#[test]
fn cpu_time_without_the_gvl_goes_to_the_call_that_used_it() {
    let mut recorded = Recorded::at(9);
    let mut thread = Simulated::new(1, Mode::Cpu, 1, 3);
    for _ in 0..50 {
        thread.apply(
            &Step::Off {
                blocked: 20_000_000,
                wait: 0,
                cpu: 20_000_000,
                hook: 0,
            },
            &mut recorded,
        );
    }
    let seen = recorded.sum(|row| row.stack == 9).cpu_ns as f64;
    assert!((seen / 1e9 - 1.0).abs() < 0.01, "{seen}");
}

#[test]
fn a_thread_on_a_shared_native_thread_is_charged_what_it_ran() {
    let mut recorded = Recorded::at(1);
    let mut thread = Simulated::new(1, Mode::Cpu, 1, 3);
    thread.apply(&Step::Run(3_000_000), &mut recorded);
    thread.accounting.suspended(thread.now);
    // Another native thread, whose clock stands elsewhere.
    thread.accounting.moved_to_native_thread(900_000_000);
    (thread.now, thread.cpu) = (thread.now + 10, 900_000_000);
    thread.resume(0, 0, &mut recorded);
    (thread.now, thread.cpu) = (thread.now + 1_000_000, 901_000_000);
    thread.flush(&mut recorded);
    assert_eq!(recorded.sum_of_thread(1).cpu_ns, 4_000_000);
}

#[test]
fn short_sections_make_no_more_backtrace_than_a_long_one() {
    let mut recorded = Recorded::at(1);
    let mut thread = Simulated::new(1, Mode::Wall, 1, 3);
    for _ in 0..10_000 {
        thread.apply(&Step::Run(1_000), &mut recorded);
        thread.accounting.suspended(thread.now);
        thread.pass("blocked", 9_000, 0);
        thread.pause(None, &mut recorded);
        thread.accounting.begin_running(thread.now);
    }
    // 90 ms blocked; and one in each of the two states for its first point.
    assert!(recorded.captures <= 2 * 90 + 2, "{}", recorded.captures);
}

#[test]
fn remainders_go_to_the_labels_of_the_last_sample() {
    let set = |value: &str| LabelSet::empty().with([("request".into(), Some(value.into()))]);
    let mut recorded = Recorded::at(1);
    recorded.labels = set("a");
    let mut thread = Simulated::new(1, Mode::Wall, 1, 3);
    thread.apply(&Step::Run(2_000_000), &mut recorded);
    thread.apply(&Step::Tick { before: 0 }, &mut recorded);
    recorded.labels = set("b");
    thread.apply(&Step::Run(300_000), &mut recorded);
    thread.flush(&mut recorded);
    let labels: Vec<u32> = recorded.samples.iter().map(|row| row.labels).collect();
    assert_eq!(labels, [1, 1]);
}

#[test]
fn time_up_to_an_event_that_came_after_the_moment_counts_once() {
    for is_off in [false, true] {
        let mut recorded = Recorded::at(1);
        let mut thread = Simulated::new(1, Mode::Wall, 1, 3);
        thread.apply(&Step::Run(2_000_000), &mut recorded);
        if is_off {
            thread.accounting.suspended(thread.now);
        } else {
            thread.sample(thread.now, &mut recorded);
        }
        let event = thread.now;
        thread.now = event - 500_000;
        thread.flush(&mut recorded);
        thread.now = event + 1_000_000;
        thread.flush(&mut recorded);
        assert_eq!(recorded.sum_of_thread(1).wall_ns, 3_000_000, "{is_off}");
    }
}

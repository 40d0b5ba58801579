//! CPU time without the GVL, in cpu mode.

use super::*;

/// 1 ms of work and 5 ms asleep in turns, which take 20 us of CPU time each.
fn work_and_naps(rounds: u64) -> (Simulated, Recorded) {
    let mut recorded = Recorded::at(1);
    let mut thread = Simulated::new(1, Mode::Cpu, 1, 3);
    for _ in 0..rounds {
        recorded.stack = 1;
        thread.apply(&Step::Run(1_000_000), &mut recorded);
        thread.apply(&Step::Tick { before: 0 }, &mut recorded);
        recorded.stack = 2;
        let nap = Step::Off {
            blocked: 5_000_000,
            wait: 0,
            cpu: 20_000,
            hook: 0,
        };
        thread.apply(&nap, &mut recorded);
    }
    (thread, recorded)
}

#[test]
fn what_no_sample_has_taken_goes_to_the_last_stack_without_the_gvl() {
    for rounds in [3, 70, 1_000] {
        let (mut thread, mut recorded) = work_and_naps(rounds);
        thread.flush(&mut recorded);
        let at = |stack| recorded.sum(|row| row.stack == stack).cpu_ns;
        assert_eq!((at(1), at(2)), (rounds * 1_000_000, rounds * 20_000));
    }
}

#[test]
fn what_a_thread_that_has_ended_leaves_goes_there_too() {
    let (mut thread, mut recorded) = work_and_naps(120);
    thread.accounting.suspended(thread.now);
    recorded.finish(&mut thread.accounting, thread.cpu);
    let at = |stack| recorded.sum(|row| row.stack == stack).cpu_ns;
    assert_eq!((at(1), at(2)), (120_000_000, 2_400_000));
}

/// Shares of works of 50 and 150 us, each after a nap that takes 20 us of CPU time, and 2 us in
/// each of the hooks around it. A tick is taken in the works only, and in none of the hooks.
fn shares_beside_naps(seed: u64) -> [f64; 3] {
    let mut recorded = Recorded::default();
    let mut schedule = crate::timer::sources::schedule::Schedule::new(pace(), seed);
    let mut thread = Simulated::new(1, Mode::Cpu, 1_000, seed);
    let mut next_tick = thread.now + schedule.gap(true);
    for round in 0..60_000 {
        let (stack, length) = [(1, 50_000), (2, 150_000)][round % 2];
        recorded.stack = 3;
        let nap = Step::Off {
            blocked: 10_000_000,
            wait: 0,
            cpu: 22_000,
            hook: 2_000,
        };
        thread.apply(&nap, &mut recorded);
        recorded.stack = stack;
        let end = thread.now + length;
        while next_tick < end {
            if next_tick >= thread.resumed {
                thread.apply(&Step::Run(next_tick - thread.now), &mut recorded);
                thread.sample(next_tick, &mut recorded);
            }
            next_tick += schedule.gap(true);
        }
        thread.apply(&Step::Run(end - thread.now), &mut recorded);
    }
    thread.flush(&mut recorded);
    let whole = recorded.sum_of_thread(1).cpu_ns;
    assert_eq!(whole, thread.cpu - 7_000);
    [1, 2, 3].map(|stack| recorded.sum(|row| row.stack == stack).cpu_ns as f64 / whole as f64)
}

#[test]
fn the_hooks_around_a_nap_are_part_of_it() {
    let truth = [50.0, 150.0, 48.0].map(|length| length / 248.0);
    for seed in 1..4 {
        let seen = shares_beside_naps(seed);
        // The naps' is exact: only the works' is a draw.
        assert!((seen[2] - truth[2]).abs() < 0.001, "{seen:?}");
        assert!((seen[0] - truth[0]).abs() < 0.015, "{seen:?}");
    }
}

#[test]
fn a_section_ends_with_a_stack_for_it_once() {
    let (mut thread, mut recorded) = work_and_naps(3);
    for section in 0..20 {
        let captures = recorded.captures;
        thread.pause(Some(thread.cpu), &mut recorded);
        assert_eq!(recorded.captures - captures, u64::from(section == 0));
        thread.accounting.begin_running(thread.now);
        recorded.stack = 1;
        thread.apply(&Step::Run(1_000_000), &mut recorded);
    }
    assert_eq!(recorded.sum(|row| row.stack == 2).cpu_ns, 60_000);
}

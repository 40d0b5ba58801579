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

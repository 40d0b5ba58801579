//! What goes into a log comes out of it, whatever stacks follow one another.

use super::*;
use proptest::prelude::*;

const MAX_DEPTH: usize = 40;

/// A stack with its lines, leaf first.
type Taken = (Vec<FrameWord>, Vec<u32>);

fn stack(taken: &Taken) -> Stack<'_> {
    Stack {
        frames: &taken.0,
        lines: &taken.1,
        cut: false,
    }
}

fn times(tick: u64) -> TickTimes {
    TickTimes {
        tick_ns: tick,
        now_ns: tick + 1,
        cpu_ns: tick + 2,
        waits: (!tick.is_multiple_of(3)).then_some(Waits {
            ns: tick + 3,
            threads: tick as u32 % 4,
        }),
    }
}

fn push(log: &mut TickLog, taken: &Taken, tick: u64) -> bool {
    let shared = log.shared_with(stack(taken));
    log.push(stack(taken), shared, times(tick), FiberWord::default())
}

fn drained(log: &mut TickLog) -> Vec<(Taken, u64, TickTimes)> {
    let mut all = Vec::new();
    log.drain(|tick| {
        let taken = (tick.stack.frames.to_vec(), tick.stack.lines.to_vec());
        all.push((taken, tick.ticks, tick.times));
    });
    assert!(log.is_empty());
    all
}

fn stacks() -> impl Strategy<Value = Vec<Taken>> {
    let frame = (1usize..4, 0u32..2);
    let stack = prop::collection::vec(frame, 0..MAX_DEPTH);
    // Few different frames, and runs of equal stacks: much is shared.
    let run = (stack, 1usize..4).prop_map(|(stack, times)| vec![stack.into_iter().unzip(); times]);
    prop::collection::vec(run, 0..40).prop_map(|runs| runs.concat())
}

proptest! {
    #[test]
    fn every_stack_comes_back_in_order_with_its_times(stacks in stacks(), drain_after in 1usize..50) {
        let mut log = TickLog::new(MAX_DEPTH, true, false);
        let mut seen = Vec::new();
        for (index, taken) in stacks.iter().enumerate() {
            prop_assert!(push(&mut log, taken, index as u64));
            let marked: Vec<_> = log.frames().collect();
            prop_assert!(taken.0.iter().all(|frame| marked.contains(frame)), "all frames are roots");
            if index % drain_after == 0 {
                seen.extend(drained(&mut log));
            }
        }
        seen.extend(drained(&mut log));
        let expected: Vec<_> = (0..).zip(&stacks).map(|(tick, taken)| (taken.clone(), 1, times(tick))).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn a_run_of_equal_stacks_is_one_record_with_the_times_of_its_last_tick(stacks in stacks()) {
        let mut log = TickLog::new(MAX_DEPTH, true, true);
        let mut expected: Vec<(Taken, u64, TickTimes)> = Vec::new();
        for (tick, taken) in (0..).zip(&stacks) {
            prop_assert!(push(&mut log, taken, tick));
            prop_assert_eq!(log.last_tick(), tick);
            match expected.last_mut().filter(|last| last.0 == *taken) {
                Some(last) => (last.1, last.2) = (last.1 + 1, times(tick)),
                None => expected.push((taken.clone(), 1, times(tick))),
            }
        }
        prop_assert_eq!(drained(&mut log), expected);
    }

    #[test]
    fn without_lines_stacks_that_differ_in_lines_only_are_equal(stacks in stacks()) {
        let mut log = TickLog::new(MAX_DEPTH, false, true);
        for (tick, taken) in (0..).zip(&stacks) {
            prop_assert!(push(&mut log, taken, tick));
        }
        let mut expected: Vec<_> = stacks.into_iter().map(|taken| taken.0).collect();
        expected.dedup();
        let seen: Vec<_> = drained(&mut log).into_iter().map(|(taken, ..)| taken).collect();
        prop_assert!(seen.iter().all(|taken| taken.1.is_empty()));
        let seen: Vec<_> = seen.into_iter().map(|taken| taken.0).collect();
        prop_assert_eq!(seen, expected);
    }
}

#[test]
fn a_full_log_refuses_stacks_and_never_grows() {
    let mut log = TickLog::new(MAX_DEPTH, true, true);
    let memory = log.memory();
    let taken = |leaf: usize| (vec![leaf, 1], vec![7, 8]);
    let mut pushed = 0;
    while push(&mut log, &taken(pushed + 2), pushed as u64) {
        pushed += 1;
        assert!(pushed < WORDS);
    }
    assert!(log.is_filling());
    // A run needs no room.
    assert!(push(&mut log, &taken(pushed + 1), 7));
    assert_eq!(log.memory(), memory);
    let all = drained(&mut log);
    assert_eq!(all.len(), pushed);
    assert_eq!(all[pushed - 1].1, 2);
    assert!(!log.is_filling());
    assert!(push(&mut log, &taken(9), 1), "there is room again");
}

#[test]
fn a_stack_deeper_than_the_log_takes_is_refused() {
    let mut log = TickLog::new(3, true, true);
    assert!(!push(&mut log, &(vec![1; 4], vec![0; 4]), 1));
    assert!(log.is_empty());
    assert!(push(&mut log, &(vec![1; 3], vec![0; 3]), 1));
}

#[test]
fn a_count_stays_within_16_bits() {
    let mut log = TickLog::new(3, true, true);
    let taken = (vec![2, 1], vec![3, 4]);
    for tick in 0..70_000 {
        assert!(push(&mut log, &taken, tick));
    }
    let counts: Vec<u64> = drained(&mut log)
        .into_iter()
        .map(|(_, ticks, _)| ticks)
        .collect();
    assert_eq!(counts, [65_535, 4_465]);
}

#[test]
fn cut_stacks_are_known_as_such() {
    let mut log = TickLog::new(3, true, true);
    let stack = Stack {
        frames: &[1, 2],
        lines: &[0, 0],
        cut: true,
    };
    assert!(log.push(stack, 0, times(1), FiberWord::default()));
    let mut cut = false;
    log.drain(|tick| cut = tick.stack.cut);
    assert!(cut);
}

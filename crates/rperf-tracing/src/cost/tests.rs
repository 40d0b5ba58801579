//! Tests of the cost of tracing, taken out.

use super::*;
use crate::event::TracedKind;
use crate::tree::counts::{Count, Counts};
use crate::tree::folds::Exclusion;
use crate::tree::state_times::StateTimes;
use crate::tree::{ROOT, TracedFrame, TracedTree};

const COSTS: Costs = [
    PairCost {
        callee_ns: 10.0,
        caller_ns: 20.0,
    },
    PairCost {
        callee_ns: 1.0,
        caller_ns: 2.0,
    },
    PairCost {
        callee_ns: 0.0,
        caller_ns: 0.0,
    },
];

fn count(calls: u64, running: u64) -> Count {
    Count { calls, running }
}

fn sums(counts: &[(u32, Count)]) -> ThreadSums {
    let mut all = Counts::default();
    for &(node, count) in counts {
        *all.of(node) = count;
    }
    ThreadSums {
        counts: all,
        ..ThreadSums::default()
    }
}

fn compensated(
    tree: &TracedTree,
    counts: &[(u32, Count)],
    excluded: &[Exclusion],
    ns_per_tick: f64,
    c_pays: bool,
) -> (Vec<Times>, f64) {
    let (sums, mut rounding) = (sums(counts), Rounding::new(ns_per_tick));
    let folds = Folds::new(tree.nodes(), excluded, u32::MAX, c_pays);
    let times = compensate(tree.nodes(), &sums, &COSTS, &folds, c_pays, &mut rounding);
    let uncovered_ns = times.uncovered_ns();
    (times.nodes, uncovered_ns)
}

fn frame(word: usize) -> TracedFrame {
    TracedFrame { word, method: 0 }
}

#[test]
fn each_call_costs_the_callee_and_who_has_the_callers_time() {
    let mut tree = TracedTree::default();
    let caller = tree.child(ROOT, frame(1), TracedKind::Method);
    let each = tree.child(caller, frame(2), TracedKind::InsertedC);
    let block = tree.child(each, frame(1), TracedKind::Block);
    let counts = [(caller, count(1, 500)), (block, count(100, 300))];
    let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, false);
    let found: Vec<_> = times
        .iter()
        .map(|it| (it.node, it.running_ns, it.overhead_ns))
        .collect();
    assert_eq!(found, [(caller, 290, 210), (block, 200, 100)]);
    assert_eq!(
        uncovered, 20.0,
        "the root has no time to take its part from"
    );
    let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, true);
    assert_eq!((times[0].overhead_ns, uncovered), (10, 220.0));
}

#[test]
fn an_excluded_frame_has_its_times_and_costs_in_its_caller() {
    let mut tree = TracedTree::default();
    let caller = tree.child(ROOT, frame(1), TracedKind::Method);
    let between = tree.child(caller, frame(2), TracedKind::Method);
    let each = tree.child(between, frame(3), TracedKind::InsertedC);
    let block = tree.child(each, frame(4), TracedKind::Block);
    let callee = tree.child(block, frame(1), TracedKind::Method);
    let counts = [
        (caller, count(1, 500)),
        (between, count(2, 400)),
        (block, count(10, 300)),
        (callee, count(10, 200)),
    ];
    use Exclusion::{Asked, None, Own};
    let excluded = [None, Asked, None, Own];
    let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
    let found: Vec<_> = times
        .iter()
        .map(|it| (it.node, it.calls, it.running_ns, it.overhead_ns))
        .collect();
    // Its own 10, 2 * 30 and 10 * 3 of those left out, and 10 * 20 of those that they called.
    assert_eq!(found, [(caller, 1, 900, 300), (callee, 10, 100, 100)]);
}

#[test]
fn what_loads_the_profiler_and_its_own_frames_are_one() {
    use Exclusion::{Loader, None, Own};
    let mut tree = TracedTree::default();
    let require = tree.child(ROOT, frame(1), TracedKind::Inserted);
    let own = tree.child(require, frame(2), TracedKind::Inserted);
    let called = tree.child(own, frame(3), TracedKind::Method);
    let programs = tree.child(ROOT, frame(1), TracedKind::Method);
    let counts = [require, own, called, programs].map(|node| (node, count(0, 10)));
    let excluded = [Loader, Own, None];
    let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
    let found: Vec<_> = times.iter().map(|it| (it.node, it.running_ns)).collect();
    let own_root = tree.nodes().len() as u32;
    assert_eq!(found, [(called, 10), (programs, 10), (own_root, 20)]);
}

#[test]
fn core_methods_that_the_profiler_calls_are_its_own_unless_it_runs_the_programs_code() {
    use Exclusion::{Core, None, Own, PassesOn};
    let mut tree = TracedTree::default();
    let own = tree.child(ROOT, frame(1), TracedKind::Method);
    let list = tree.child(own, frame(2), TracedKind::C);
    let hook = tree.child(list, frame(3), TracedKind::C);
    let programs = tree.child(hook, frame(4), TracedKind::Method);
    let its = tree.child(programs, frame(2), TracedKind::C);
    let label = tree.child(ROOT, frame(5), TracedKind::Method);
    let called = tree.child(label, frame(2), TracedKind::C);
    let core = tree.child(own, frame(6), TracedKind::Method);
    let programs_core = tree.child(programs, frame(6), TracedKind::Method);
    let nodes = [
        own,
        list,
        hook,
        programs,
        its,
        label,
        called,
        core,
        programs_core,
    ];
    let counts = nodes.map(|node| (node, count(1, 10_000)));
    let excluded = [Own, None, None, None, PassesOn, Core];
    let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
    let found: Vec<_> = times.iter().map(|it| (it.node, it.calls)).collect();
    let own_root = tree.nodes().len() as u32;
    let shown = [
        (programs, 1),
        (its, 1),
        (called, 1),
        (programs_core, 1),
        (own_root, 0),
    ];
    assert_eq!(found, shown);
}

#[test]
fn what_would_be_negative_is_zero_and_told() {
    let mut tree = TracedTree::default();
    let node = tree.child(ROOT, frame(1), TracedKind::Method);
    let counts = [(node, count(100, 300))];
    let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, false);
    assert_eq!((times[0].running_ns, times[0].overhead_ns), (0, 300));
    assert_eq!(uncovered, 2_700.0);
}

#[test]
fn parts_add_up_to_the_ns_whatever_a_tick_is() {
    let mut tree = TracedTree::default();
    let counts: Vec<_> = (1..200)
        .map(|word| {
            (
                tree.child(ROOT, frame(word), TracedKind::Inserted),
                count(0, word as u64),
            )
        })
        .collect();
    let mut states = StateTimes::default();
    states.add(3, State::GvlWait, 7);
    states.add(5, State::GcMarking, 4);
    let sums = ThreadSums {
        states,
        ..sums(&counts)
    };
    let mut rounding = Rounding::new(0.4987);
    let folds = Folds::new(tree.nodes(), &[], u32::MAX, false);
    let times = compensate(tree.nodes(), &sums, &COSTS, &folds, false, &mut rounding);
    let nodes = times.nodes.iter().map(|it| it.running_ns + it.overhead_ns);
    let sum: u64 = nodes.chain(times.states.iter().map(|it| it.2)).sum();
    assert_eq!(sum, ((199.0 * 100.0 + 11.0) * 0.4987_f64).round() as u64);
}

#[test]
fn costs_are_of_the_fastest_runs_of_each_loop() {
    let run = |callee_ns, body_ns| LoopTimes {
        callee_ns,
        caller_ns: 2.0 * callee_ns,
        body_ns,
    };
    let mut few = [run(900.0, 1.0), run(100.0, 1.0)];
    let mut many = [
        run(950.0, 9.0),
        run(300.0, 40.0),
        run(700.0, 7.0),
        run(400.0, 8.0),
        run(320.0, 60.0),
    ];
    let mut calibration = Calibration::default();
    calibration.add(CallKind::Block, &mut few, &mut many, 10.0, 2.0);
    let cost = PairCost {
        callee_ns: 20.0,
        caller_ns: 41.0,
    };
    assert_eq!(
        calibration.costs,
        [PairCost::default(), cost, PairCost::default()]
    );
    assert_eq!(calibration.bodies_ns, [0.0, 50.0, 0.0]);
    calibration.add(CallKind::Block, &mut few, &mut many, 10.0, 1_000.0);
    assert_eq!(calibration.costs, Costs::default(), "nothing is negative");
}

#[test]
fn costs_follow_the_time_that_the_hook_takes() {
    let calibration = Calibration {
        costs: COSTS,
        bodies_ns: [50.0, 50.0, 0.0],
    };
    let mut bodies = Bodies::default();
    for _ in 0..FEW_LOOKS {
        bodies.add(CallKind::Method, false, 120);
        bodies.add(CallKind::Method, true, 80);
        bodies.add(CallKind::Method, true, LONGEST_BODY);
        bodies.add(CallKind::C, true, 80);
    }
    let costs = calibration.costs_with(&bodies, 0.5);
    assert_eq!(
        costs[0],
        PairCost {
            callee_ns: 20.0,
            caller_ns: 40.0
        }
    );
    assert_eq!(costs[1..], COSTS[1..], "too little is known of others");
    assert_eq!(bodies.of_pair(CallKind::C), None);
}

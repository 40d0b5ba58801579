//! Tests of the costs of functions and calls.

use super::*;
use crate::top::{By, Top};
use proptest::collection::vec;
use proptest::prelude::*;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{Column, LabelSetId, State, WeightKey, WeightTable};
use std::collections::BTreeMap;

const TIME: Column = Column(1);

/// The costs of calls: callers, callees, and the value in a column.
fn calls(costs: &CallCosts, column: usize) -> Vec<(&str, &str, i64)> {
    let name = |place: usize| costs.functions[place].function.name.as_str();
    let of_one = |function: &FunctionCosts| {
        let caller = function.function.name.clone();
        let place = costs
            .functions
            .iter()
            .position(|it| it.function.name == caller);
        let place = place.expect("it is there");
        let calls = function.calls.iter();
        calls
            .map(|call| (place, call.callee, call.costs[column]))
            .collect::<Vec<_>>()
    };
    let all = costs.functions.iter().flat_map(of_one);
    all.map(|(caller, callee, value)| (name(caller), name(callee), value))
        .collect()
}

#[test]
fn the_callers_of_a_function_pay_its_total_in_recursion_too() {
    let test = TestProfile::wall()
        .with(&["main", "a", "b", "a"], 1, State::Running, 30)
        .with(&["main", "a", "b", "leaf"], 1, State::Running, 7)
        .with(&["main"], 2, State::GvlBlocked, 5);
    let costs = CallCosts::of(&test.profile);
    assert_eq!((costs.totals[1], costs.counts_calls), (42, false));
    let mut found = calls(&costs, 1);
    found.sort_unstable();
    assert_eq!(
        found,
        [
            ("a", "b", 37),
            ("b", "a", 0),
            ("b", "leaf", 7),
            ("main", "[GVL blocked]", 5),
            ("main", "a", 37),
            ("thread 1: thread 1", "main", 37),
            ("thread 2: thread 2", "main", 5),
        ]
    );
    let a = costs.functions.iter().find(|it| it.function.name == "a");
    let a = a.expect("it is there");
    assert_eq!((a.first_line, a.kind), (1, FunctionKind::Method));
    assert_eq!(a.lines, [(2, vec![1, 30, 15])]);
    assert_eq!((a.calls[0].line, a.calls[0].count), (2, 2), "two samples");
}

#[test]
fn methods_blocks_and_what_was_not_counted_are_functions_of_their_own() {
    const MAIN: TestFrame<'_> = ("<main>", "app.rb", 1, 0);
    const EACH: TestFrame<'_> = ("Array#each", "<C method>", 0, 0);
    const WORK: TestFrame<'_> = ("Object#work", "app.rb", 2, 0);
    const BLOCK: TestFrame<'_> = ("block in Object#work", "app.rb", 2, 0);
    let types = [
        ("calls", "count"),
        ("wall", "nanoseconds"),
        ("block_calls", "count"),
    ];
    let mut profile = rperf_model::Profile::new(test_support::schema(&types, 1));
    let mut table = WeightTable::new(3);
    for (frames, values) in [
        (&[MAIN][..], [0, 5, 0]),
        (&[MAIN, WORK], [2, 7, 0]),
        (&[MAIN, WORK, EACH, BLOCK], [0, 3, 30]),
        (&[MAIN, WORK, EACH, BLOCK, WORK], [4, 1, 0]),
    ] {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 0,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &values);
    }
    profile.weights = table.into_weights();
    let costs = CallCosts::of(&profile);
    let functions = costs.functions.iter();
    let found: Vec<_> = functions
        .map(|it| (it.function.name.as_str(), it.kind, it.calls.len()))
        .collect();
    assert_eq!(
        found,
        [
            ("Array#each", FunctionKind::NotCounted, 1),
            ("<main>", FunctionKind::NotCounted, 1),
            ("Object#work", FunctionKind::Method, 1),
            ("block in Object#work", FunctionKind::Method, 1),
        ]
    );
    let counts = |place: usize| costs.functions[place].calls.iter();
    let [each, main, method, block] = [0, 1, 2, 3].map(|place| {
        let calls = counts(place).map(|call| (call.callee, call.count, call.costs[1]));
        calls.collect::<Vec<_>>()
    });
    assert_eq!((each, main), (vec![(3, 30, 4)], vec![(2, 2, 11)]));
    assert_eq!(
        method,
        [(0, 0, 4)],
        "the C method was seen, and not counted"
    );
    assert_eq!(
        block,
        [(2, 4, 0)],
        "the method is open already: its time isn't the block's"
    );
    assert_eq!((costs.totals[1], costs.counts_calls), (16, true));
}

#[test]
fn objects_are_their_methods_own_though_their_nodes_have_no_calls() {
    let types = [
        ("calls", "count"),
        ("wall", "nanoseconds"),
        ("alloc_objects", "count"),
    ];
    let mut profile = rperf_model::Profile::new(test_support::schema(&types, 1));
    let mut table = WeightTable::new(3);
    let work = |line| {
        [
            ("<main>", "app.rb", 1, 0),
            ("Object#work", "app.rb", 2, line),
        ]
    };
    for (frames, values) in [(work(0), [2, 7, 0]), (work(4), [0, 0, 5])] {
        let key = WeightKey {
            node: test_support::node(&mut profile, &frames),
            thread: 0,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &values);
    }
    profile.weights = table.into_weights();
    let costs = CallCosts::of(&profile);
    let found = costs.functions.iter();
    let found: Vec<_> = found
        .map(|it| (it.function.name.as_str(), it.kind))
        .collect();
    let expected = [
        ("<main>", FunctionKind::NotCounted),
        ("Object#work", FunctionKind::Method),
    ];
    assert_eq!(found, expected);
    let lines = [(2, vec![2, 7, 0]), (4, vec![0, 0, 5])];
    assert_eq!(costs.functions[1].lines, lines);
    let calls = &costs.functions[0].calls;
    assert_eq!((calls.len(), calls[0].count), (1, 2));
    assert_eq!(calls[0].costs, [2, 7, 5]);
}

#[test]
fn values_below_zero_are_left_out_and_told() {
    let test = TestProfile::wall()
        .with(&["main"], 1, State::Running, -4)
        .with(&["main", "a"], 1, State::Running, 6);
    let costs = CallCosts::of(&test.profile);
    assert_eq!((costs.totals[1], costs.negative_values), (6, 2));
}

fn stacks() -> impl Strategy<Value = Vec<(Vec<&'static str>, u32, bool, i64)>> {
    let name = prop::sample::select(vec!["a", "b", "c", "d"]);
    let stack = (vec(name, 0..7), 1..3_u32, any::<bool>(), 1..100_i64);
    vec(stack, 0..25)
}

proptest! {
    #[test]
    fn sums_are_those_of_the_table(stacks in stacks()) {
        let mut test = TestProfile::wall();
        for (names, thread, is_blocked, value) in &stacks {
            let state = if *is_blocked { State::GvlBlocked } else { State::Running };
            test.add(names, *thread, LabelSetId(0), state, *value);
        }
        let costs = CallCosts::of(&test.profile);
        let mut own: BTreeMap<&str, i64> = BTreeMap::new();
        let mut total: BTreeMap<&str, i64> = BTreeMap::new();
        for function in &costs.functions {
            let sum: i64 = function.lines.iter().map(|(_, costs)| costs[1]).sum();
            *own.entry(&function.function.name).or_default() += sum;
            for call in &function.calls {
                let callee = &costs.functions[call.callee].function.name;
                *total.entry(callee).or_default() += call.costs[1];
            }
        }
        let top = Top::of(&test.profile, TIME, &By::Function);
        for row in &top.rows {
            let name = row.function.name.as_str();
            prop_assert_eq!(own.get(name).copied().unwrap_or(0), row.self_value, "{}", name);
            prop_assert_eq!(total.get(name), Some(&row.total_value), "{}", name);
        }
        prop_assert_eq!(costs.totals[1], top.total);
    }
}

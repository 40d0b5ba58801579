//! Tests of the totals by line, by example and against a slow obvious count.

use super::*;
use proptest::prelude::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{LabelSetId, State, WeightKey};
use std::collections::{BTreeMap, BTreeSet};

const MAIN: TestFrame<'_> = ("<main>", "/app.rb", 1, 20);
const WORK: TestFrame<'_> = ("Object#work", "/app.rb", 5, 7);
const SLEEP: TestFrame<'_> = ("Kernel#sleep", "<C method>", 0, 0);

const TIME: Column = Column(1);

/// A profile with these stacks, root first, of CPU time.
fn profile(stacks: &[(&[TestFrame<'_>], State, i64)]) -> Profile {
    let mut profile = Profile::new(test_support::cpu_schema());
    for &(frames, state, ns) in stacks {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 1,
            labels: LabelSetId::default(),
            state,
        };
        profile.weights.push(key, &[1, ns]);
    }
    profile
}

/// Line, method, self, total.
fn rows(lines: &Lines) -> Vec<(u32, &str, i64, i64)> {
    let rows = lines.lines.iter();
    rows.map(|row| {
        (
            row.line,
            row.method.as_str(),
            row.self_value,
            row.total_value,
        )
    })
    .collect()
}

#[test]
fn the_innermost_line_has_the_self_time() {
    let other = ("Object#work", "/app.rb", 5, 8);
    let lines = Lines::of(
        &profile(&[
            (&[MAIN, WORK], State::Running, 3),
            (&[MAIN, other], State::Running, 40),
            (&[MAIN], State::Running, 1),
        ]),
        TIME,
    );
    assert_eq!(
        rows(&lines),
        [
            (8, "Object#work", 40, 40),
            (7, "Object#work", 3, 3),
            (20, "<main>", 1, 44)
        ]
    );
    assert_eq!(lines.unknown, 0);
}

#[test]
fn what_has_no_line_belongs_to_the_line_that_called_it() {
    let each = ("Array#each", "<internal:array>", 40, 52);
    let lines = Lines::of(
        &profile(&[
            (&[MAIN, SLEEP], State::GvlBlocked, 100),
            (&[MAIN, each], State::Running, 10),
            (&[MAIN, each, WORK, SLEEP], State::GcMarking, 1),
        ]),
        TIME,
    );
    assert_eq!(
        rows(&lines),
        [(20, "<main>", 110, 111), (7, "Object#work", 1, 1)]
    );
}

#[test]
fn a_line_that_is_not_known_takes_nothing_from_its_caller() {
    let unknown = ("Object#work", "/app.rb", 5, 0);
    let lines = Lines::of(
        &profile(&[
            (&[MAIN, unknown, SLEEP], State::Running, 5),
            (&[SLEEP], State::Running, 2),
            (&[], State::Running, 1),
        ]),
        TIME,
    );
    assert_eq!(rows(&lines), [(20, "<main>", 0, 5)]);
    assert_eq!(lines.unknown, 8);
}

#[test]
fn recursion_counts_once_per_stack() {
    let other = ("Object#work", "/app.rb", 5, 8);
    let lines = Lines::of(
        &profile(&[(&[WORK, other, WORK, other, WORK], State::Running, 7)]),
        TIME,
    );
    assert_eq!(
        rows(&lines),
        [(7, "Object#work", 7, 7), (8, "Object#work", 0, 7)]
    );
}

#[test]
fn a_line_is_one_whatever_runs_on_it() {
    let block = ("block in Object#work", "/app.rb", 7, 7);
    let lines = Lines::of(
        &profile(&[
            (&[WORK, block], State::Running, 4),
            (&[block], State::Running, 2),
            (&[("Object#work", "/lib.rb", 5, 7)], State::Running, 9),
        ]),
        TIME,
    );
    assert_eq!(
        rows(&lines),
        [(7, "Object#work", 9, 9), (7, "block in Object#work", 6, 6)]
    );
    // The same time at the line: the shorter name.
    let lines = Lines::of(&profile(&[(&[WORK, block], State::Running, 4)]), TIME);
    assert_eq!(rows(&lines), [(7, "Object#work", 4, 4)]);
}

#[test]
fn a_profile_without_lines_has_none() {
    let no_line = ("Object#work", "/app.rb", 5, 0);
    let lines = Lines::of(&profile(&[(&[no_line], State::Running, 4)]), TIME);
    assert_eq!((lines.lines.len(), lines.unknown), (0, 4));
    assert_eq!(Lines::of(&profile(&[]), TIME), Lines::default());
}

proptest! {
    #[test]
    fn lines_agree_with_counting_stack_by_stack(
        samples in prop::collection::vec(
            (prop::collection::vec((0..4usize, 0..4u32), 0..6), 0..1_000i64),
            0..20,
        )
    ) {
        let paths = ["/a.rb", "/b.rb", "<C method>", ""];
        let frames = |stack: &[(usize, u32)]| -> Vec<TestFrame<'_>> {
            stack.iter().map(|&(path, line)| ("method", paths[path], 1, line)).collect()
        };
        let stacks: Vec<_> = samples.iter().map(|(stack, ns)| (frames(stack), *ns)).collect();
        let mut self_ns: BTreeMap<_, i64> = BTreeMap::new();
        let mut total_ns: BTreeMap<_, i64> = BTreeMap::new();
        for (stack, ns) in &stacks {
            let lines = stack.iter().map(|frame| (frame.1, frame.3));
            let in_files: Vec<_> = lines.filter(|(path, _)| path.starts_with('/')).collect();
            let innermost = in_files.last().copied().filter(|(_, line)| *line > 0);
            *self_ns.entry(innermost).or_default() += ns;
            for line in BTreeSet::from_iter(in_files).into_iter().filter(|(_, line)| *line > 0) {
                *total_ns.entry(line).or_default() += ns;
            }
        }
        let slices: Vec<_> = stacks.iter()
            .map(|(stack, ns)| (stack.as_slice(), State::Running, *ns))
            .collect();
        let lines = Lines::of(&profile(&slices), TIME);
        prop_assert_eq!(lines.unknown, self_ns.get(&None).copied().unwrap_or(0));
        total_ns.retain(|_, ns| *ns > 0);
        prop_assert_eq!(lines.lines.len(), total_ns.len());
        for row in &lines.lines {
            let line = (row.path.as_str(), row.line);
            prop_assert_eq!(row.total_value, total_ns[&line]);
            prop_assert_eq!(row.self_value, self_ns.get(&Some(line)).copied().unwrap_or(0));
        }
        let order = |pair: &[LineTotals]| pair[0].self_value >= pair[1].self_value;
        prop_assert!(lines.lines.windows(2).all(order));
    }
}

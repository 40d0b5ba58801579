//! Tests of callers and callees.

use super::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{LabelSetId, State, WeightKey};

const TIME: Column = Column(1);

/// Names and lines, root first.
type Stack<'a> = &'a [(&'a str, u32)];

fn neighbours(stacks: &[(Stack<'_>, State, i64)], name: &str) -> Vec<Neighbours> {
    let mut profile = Profile::new(test_support::cpu_schema());
    for &(stack, state, ns) in stacks {
        let frames: Vec<TestFrame<'_>> = stack
            .iter()
            .map(|&(name, line)| (name, "a.rb", 1, line))
            .collect();
        let key = WeightKey {
            node: test_support::node(&mut profile, &frames),
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        profile.weights.push(key, &[1, ns]);
    }
    let pattern = NamePattern::new(name, &profile).expect("a pattern");
    Neighbours::of(&profile, TIME, &pattern)
}

/// Name, value and lines.
type Row<'a> = (&'a str, i64, &'a [(u32, i64)]);

fn side(side: &[Neighbour]) -> Vec<Row<'_>> {
    let side = side.iter();
    side.map(|it| (it.function.name.as_str(), it.value, &it.lines[..]))
        .collect()
}

#[test]
fn callers_and_callees_come_with_the_calling_lines() {
    let found = neighbours(
        &[
            (&[("main", 3), ("work", 7), ("sort", 0)], State::Running, 10),
            (&[("main", 3), ("work", 8)], State::Running, 5),
            (&[("main", 4), ("work", 8)], State::GvlWait, 2),
            (&[("other", 9), ("work", 8)], State::Running, 40),
            (&[("main", 3), ("unrelated", 1)], State::Running, 100),
        ],
        "work",
    );
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].self_value, found[0].total_value), (45, 57));
    assert_eq!(
        side(&found[0].callers),
        [
            ("other", 40, &[(9, 40)][..]),
            ("main", 17, &[(3, 15), (4, 2)])
        ]
    );
    assert_eq!(
        side(&found[0].callees),
        [("sort", 10, &[(7, 10)][..]), ("[GVL wait]", 2, &[(8, 2)])]
    );
}

#[test]
fn recursive_calls_count_once_per_stack() {
    let fib = [("main", 9), ("fib", 2), ("fib", 3), ("fib", 2), ("fib", 1)];
    let found = neighbours(&[(&fib, State::Running, 8)], "^fi");
    assert_eq!((found[0].self_value, found[0].total_value), (8, 8));
    assert_eq!(
        side(&found[0].callers),
        [
            ("fib", 8, &[(2, 8), (3, 8)][..]),
            ("main", 8, &[(9, 8)][..])
        ]
    );
    assert_eq!(side(&found[0].callees), [("fib", 8, &[(2, 8), (3, 8)][..])]);
}

#[test]
fn states_have_callers_and_no_name_finds_nothing() {
    let stacks: [(Stack<'_>, State, i64); 1] = [(&[("main", 3)], State::GvlBlocked, 6)];
    let found = neighbours(&stacks, "[GVL blocked]");
    assert_eq!(side(&found[0].callers), [("main", 6, &[(3, 6)][..])]);
    assert!(neighbours(&stacks, "nothing").is_empty());
}

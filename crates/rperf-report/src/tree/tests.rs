//! Tests of the call tree, both ways.

use super::*;
use proptest::prelude::*;
use rperf_model::State;
use rperf_model::test_profile::TestProfile;

const TIME: Column = Column(1);

/// Depth, name, self and total of each branch.
fn rows(tree: &Tree) -> Vec<(usize, &str, i64, i64)> {
    let rows = tree.branches.iter();
    rows.map(|branch| {
        (
            branch.depth,
            tree.functions[branch.function].name.as_str(),
            branch.self_value,
            branch.total_value,
        )
    })
    .collect()
}

fn example() -> TestProfile {
    TestProfile::wall()
        .with(&["main", "a", "work"], 1, State::Running, 10)
        .with(&["main", "a", "work"], 1, State::GvlWait, 5)
        .with(&["main", "b", "work"], 2, State::Running, 20)
        .with(&["main", "b"], 1, State::Running, 1)
}

#[test]
fn top_down_a_branch_has_what_it_calls_below_it() {
    let profile = example().profile;
    let tree = Tree::of(&profile, TIME, Direction::TopDown, TreeLimits::default());
    assert_eq!(tree.total, 36);
    assert_eq!(
        rows(&tree),
        [
            (0, "main", 0, 36),
            (1, "b", 1, 21),
            (2, "work", 20, 20),
            (1, "a", 0, 15),
            (2, "work", 10, 15),
            (3, "[GVL wait]", 5, 5),
        ]
    );
}

#[test]
fn bottom_up_a_branch_has_its_callers_below_it() {
    let profile = example().profile;
    let tree = Tree::of(&profile, TIME, Direction::BottomUp, TreeLimits::default());
    assert_eq!(
        rows(&tree),
        [
            (0, "work", 0, 30),
            (1, "b", 0, 20),
            (2, "main", 20, 20),
            (1, "a", 0, 10),
            (2, "main", 10, 10),
            (0, "[GVL wait]", 0, 5),
            (1, "work", 0, 5),
            (2, "a", 0, 5),
            (3, "main", 5, 5),
            (0, "b", 0, 1),
            (1, "main", 1, 1),
        ]
    );
}

#[test]
fn small_and_deep_branches_are_left_out_and_counted() {
    let profile = example().profile;
    let limits = TreeLimits {
        least: 10,
        depth: 2,
        ..TreeLimits::default()
    };
    let tree = Tree::of(&profile, TIME, Direction::TopDown, limits);
    let left_out: Vec<_> = tree.branches.iter().map(|branch| branch.left_out).collect();
    assert_eq!(left_out, [0, 1, 1]);
    let tree = Tree::of(&profile, TIME, Direction::BottomUp, limits);
    assert_eq!((tree.branches.len(), tree.left_out), (3, 2));
}

#[test]
fn of_too_many_branches_the_largest_stay() {
    let profile = example().profile;
    let limits = TreeLimits {
        branches: 4,
        ..TreeLimits::default()
    };
    let tree = Tree::of(&profile, TIME, Direction::TopDown, limits);
    assert_eq!(
        rows(&tree),
        [
            (0, "main", 0, 36),
            (1, "b", 1, 21),
            (2, "work", 20, 20),
            (1, "a", 0, 15),
        ]
    );
    let left_out: Vec<_> = tree.branches.iter().map(|branch| branch.left_out).collect();
    assert_eq!(left_out, [0, 0, 0, 1]);
    let none = TreeLimits {
        branches: 0,
        ..TreeLimits::default()
    };
    let tree = Tree::of(&profile, TIME, Direction::BottomUp, none);
    assert_eq!((tree.branches.len(), tree.left_out), (0, 3));
}

#[test]
fn many_deep_stacks_are_shown_as_far_as_there_is_room() {
    let mut test = TestProfile::cpu();
    for number in 0..20 {
        let root = format!("stack {number}");
        let names: Vec<_> = std::iter::once(&*root).chain(["fib"; 5_000]).collect();
        test = test.with(&names, 1, State::Running, 1);
    }
    let limits = TreeLimits {
        branches: 1_000,
        ..TreeLimits::default()
    };
    let tree = Tree::of(&test.profile, TIME, Direction::TopDown, limits);
    assert_eq!(tree.branches.len(), 1_000);
    let depths = tree.branches.iter().map(|branch| branch.depth);
    assert_eq!(depths.max(), Some(1_000 / 20 - 1));
    let left_out: usize = tree.branches.iter().map(|branch| branch.left_out).sum();
    assert_eq!(left_out, 20);
}

#[test]
fn deep_stacks_are_no_trouble() {
    let names = vec!["fib"; 16_000];
    let test = TestProfile::cpu().with(&names, 1, State::Running, 7);
    for direction in [Direction::TopDown, Direction::BottomUp] {
        let tree = Tree::of(&test.profile, TIME, direction, TreeLimits::NONE);
        assert_eq!(tree.branches.len(), 16_000);
        assert!(tree.branches.iter().all(|branch| branch.total_value == 7));
    }
}

proptest! {
    #[test]
    fn both_trees_add_up_to_the_total(
        samples in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..6),
                prop::sample::select(State::ALL.to_vec()),
                1..1_000i64,
            ),
            0..20,
        )
    ) {
        let mut test = TestProfile::wall();
        for (names, state, ns) in &samples {
            test = test.with(names, 1, *state, *ns);
        }
        let total: i64 = samples.iter().map(|(_, _, ns)| ns).sum();
        for direction in [Direction::TopDown, Direction::BottomUp] {
            let tree = Tree::of(&test.profile, TIME, direction, TreeLimits::NONE);
            prop_assert_eq!(tree.total, total);
            let roots = tree.branches.iter().filter(|branch| branch.depth == 0);
            prop_assert_eq!(roots.map(|branch| branch.total_value).sum::<i64>(), total);
            let ends = tree.branches.iter().map(|branch| branch.self_value);
            prop_assert_eq!(ends.sum::<i64>(), total);
        }
    }
}

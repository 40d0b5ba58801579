//! Tests of the totals, by example and against a slow obvious count.

use super::*;
use crate::test_profile::TestProfile;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The column that the test profiles have their times in.
const TIME: Column = Column(1);

fn rows<'a>(
    functions: &[&'a FunctionTotals],
    value: impl Fn(&FunctionTotals) -> i64,
) -> Vec<(&'a str, i64)> {
    let row = |function: &&'a FunctionTotals| (function.name.as_str(), value(function));
    functions.iter().map(row).collect()
}

#[test]
fn a_state_takes_the_self_time_of_its_stack() {
    let test = TestProfile::wall()
        .with(&["main", "sleep"], 1, State::Running, 3)
        .with(&["main", "sleep"], 1, State::GvlBlocked, 250)
        .with(&["main", "work"], 1, State::Running, 44);
    let totals = Totals::of(&test.profile, TIME);
    assert_eq!(totals.value, 297);
    assert_eq!(Totals::of(&test.profile, Column(0)).value, 3);
    assert_eq!(totals.state(State::GvlBlocked).value, 250);
    assert_eq!(
        rows(&totals.flat(), |function| function.self_value),
        [("[GVL blocked]", 250), ("work", 44), ("sleep", 3)]
    );
    assert_eq!(
        rows(&totals.cumulative(), |function| function.total_value),
        [
            ("main", 297),
            ("sleep", 253),
            ("[GVL blocked]", 250),
            ("work", 44)
        ]
    );
}

#[test]
fn recursion_counts_once_per_sample() {
    let fib = ["main", "fib", "fib", "fib"];
    let test = TestProfile::cpu().with(&fib, 1, State::Running, 7);
    let totals = Totals::of(&test.profile, TIME);
    assert_eq!(
        rows(&totals.cumulative(), |function| function.total_value),
        [("fib", 7), ("main", 7)]
    );
    let fib = totals.cumulative()[0];
    assert_eq!((fib.self_value, fib.total_value), (7, 7));
}

#[test]
fn an_empty_profile_has_no_totals() {
    let totals = Totals::of(&TestProfile::cpu().profile, TIME);
    assert_eq!(totals.value, 0);
    assert!(totals.flat().is_empty() && totals.cumulative().is_empty());
}

#[test]
fn negative_values_stand_where_positive_ones_would() {
    let test = TestProfile::cpu()
        .with(&["main", "slower"], 1, State::Running, 20)
        .with(&["main", "faster"], 1, State::Running, -50)
        .with(&["main", "equal"], 1, State::Running, 0);
    let totals = Totals::of(&test.profile, TIME);
    assert_eq!(totals.value, -30);
    assert_eq!(
        rows(&totals.flat(), |function| function.self_value),
        [("faster", -50), ("slower", 20)]
    );
    assert_eq!(
        rows(&totals.cumulative(), |function| function.total_value),
        [("faster", -50), ("main", -30), ("slower", 20)]
    );
}

proptest! {
    #[test]
    fn totals_agree_with_counting_stack_by_stack(
        samples in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..6),
                prop::sample::select(State::ALL.to_vec()),
                1..1_000i64,
            ),
            0..20,
        )
    ) {
        let mut test = TestProfile::wall();
        let mut self_ns: BTreeMap<&str, i64> = BTreeMap::new();
        let mut total_ns: BTreeMap<&str, i64> = BTreeMap::new();
        for (names, state, ns) in &samples {
            test = test.with(names, 1, *state, *ns);
            let mut shown = names.clone();
            shown.extend(state.synthetic_frame().map(|(name, _)| name));
            *self_ns.entry(shown[shown.len() - 1]).or_default() += ns;
            for name in BTreeSet::from_iter(shown) {
                *total_ns.entry(name).or_default() += ns;
            }
        }
        let totals = Totals::of(&test.profile, TIME);
        let flat = totals.flat();
        let found = rows(&flat, |function| function.self_value);
        prop_assert_eq!(BTreeMap::from_iter(found), self_ns);
        let cumulative = totals.cumulative();
        let found = rows(&cumulative, |function| function.total_value);
        prop_assert_eq!(BTreeMap::from_iter(found), total_ns);
        prop_assert!(cumulative.windows(2).all(|pair| pair[0].total_value >= pair[1].total_value));
    }
}

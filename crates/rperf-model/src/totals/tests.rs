//! Tests of the totals, by example and against a slow obvious count.

use super::*;
use crate::Mode;
use crate::test_profile::TestProfile;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn rows<'a>(
    functions: &[&'a FunctionTotals],
    ns: impl Fn(&FunctionTotals) -> u64,
) -> Vec<(&'a str, u64)> {
    let row = |function: &&'a FunctionTotals| (function.name.as_str(), ns(function));
    functions.iter().map(row).collect()
}

#[test]
fn a_state_takes_the_self_time_of_its_stack() {
    let test = TestProfile::new(Mode::Wall)
        .with(&["main", "sleep"], 1, State::Running, 3)
        .with(&["main", "sleep"], 1, State::GvlBlocked, 250)
        .with(&["main", "work"], 1, State::Running, 44);
    let totals = Totals::of(&test.profile);
    assert_eq!((totals.weight_ns, totals.count), (297, 3));
    assert_eq!(totals.state(State::GvlBlocked).weight_ns, 250);
    assert_eq!(
        rows(&totals.flat(), |function| function.self_ns),
        [("[GVL blocked]", 250), ("work", 44), ("sleep", 3)]
    );
    assert_eq!(
        rows(&totals.cumulative(), |function| function.total_ns),
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
    let test = TestProfile::new(Mode::Cpu).with(&fib, 1, State::Running, 7);
    let totals = Totals::of(&test.profile);
    assert_eq!(
        rows(&totals.cumulative(), |function| function.total_ns),
        [("fib", 7), ("main", 7)]
    );
    let fib = totals.cumulative()[0];
    assert_eq!((fib.self_ns, fib.self_count, fib.count), (7, 1, 1));
}

#[test]
fn an_empty_profile_has_no_totals() {
    let totals = Totals::of(&TestProfile::new(Mode::Cpu).profile);
    assert_eq!((totals.weight_ns, totals.count), (0, 0));
    assert!(totals.flat().is_empty() && totals.cumulative().is_empty());
}

proptest! {
    #[test]
    fn totals_agree_with_counting_stack_by_stack(
        samples in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..6),
                prop::sample::select(State::ALL.to_vec()),
                1..1_000u64,
            ),
            0..20,
        )
    ) {
        let mut test = TestProfile::new(Mode::Wall);
        let mut self_ns: BTreeMap<&str, u64> = BTreeMap::new();
        let mut total_ns: BTreeMap<&str, u64> = BTreeMap::new();
        for (names, state, ns) in &samples {
            test = test.with(names, 1, *state, *ns);
            let mut shown = names.clone();
            shown.extend(state.synthetic_frame().map(|(name, _)| name));
            *self_ns.entry(shown[shown.len() - 1]).or_default() += ns;
            for name in BTreeSet::from_iter(shown) {
                *total_ns.entry(name).or_default() += ns;
            }
        }
        let totals = Totals::of(&test.profile);
        let flat = totals.flat();
        let found = rows(&flat, |function| function.self_ns);
        prop_assert_eq!(BTreeMap::from_iter(found), self_ns);
        let cumulative = totals.cumulative();
        let found = rows(&cumulative, |function| function.total_ns);
        prop_assert_eq!(BTreeMap::from_iter(found), total_ns);
        prop_assert!(cumulative.windows(2).all(|pair| pair[0].total_ns >= pair[1].total_ns));
    }
}

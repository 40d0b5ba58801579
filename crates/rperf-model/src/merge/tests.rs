//! Tests of merging, by example and by property.

use super::*;
use crate::Note;
use crate::State;
use crate::test_support::schema;
use crate::test_support::test_profile::TestProfile;
use crate::{ValueType, Weights};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The column that the test profiles have their times in.
const TIME: Column = Column(1);

#[test]
fn equal_stacks_share_their_nodes_and_threads_are_kept_apart() {
    let mut ours = TestProfile::wall()
        .with(&["main", "work"], 1, State::Running, 10)
        .with(&[], 0, State::Running, 1)
        .profile;
    let theirs = TestProfile::wall()
        .with(&["main", "other"], 1, State::Running, 5)
        .with(&["main", "work"], 1, State::Running, 20)
        .with(&[], 0, State::Running, 2)
        .profile;
    ours.merge(&theirs).expect("same schema");

    assert_eq!(ours.check(), Ok(()));
    assert_eq!(ours.tree.len(), 3);
    let seqs: Vec<u32> = ours.threads.iter().map(|thread| thread.seq).collect();
    assert_eq!(seqs, [1, 2]);
    let exited = ours.weights.iter().find(|weight| weight.key.thread == 0);
    assert_eq!(exited.map(|weight| weight.value(TIME)), Some(3));
    assert_eq!(ours.sum(TIME), 38);
}

#[test]
fn different_schemas_are_refused_and_change_nothing() {
    let mut ours = TestProfile::cpu()
        .with(&["main"], 1, State::Running, 1)
        .profile;
    let theirs = TestProfile::wall().profile;
    let error = ours.merge(&theirs).expect_err("schemas differ");
    assert_eq!(
        error.to_string(),
        "profiles of different values can't be merged: one has samples/count, cpu/nanoseconds; \
         the other has samples/count, wall/nanoseconds, cpu/nanoseconds"
    );
    assert_eq!(ours.sum(TIME), 1);
    let milliseconds = schema(&[("samples", "count"), ("cpu", "milliseconds")], 1);
    assert!(ours.merge(&Profile::new(milliseconds)).is_err());
}

#[test]
fn columns_in_another_order_are_matched_by_name_and_unit() {
    let types = [("a", "count"), ("b", "bytes"), ("c", "ms")];
    let reordered = [("c", "ms"), ("a", "count"), ("b", "bytes")];
    // In order of the columns: 1, the value, half of it.
    let sample = |types, default, value| {
        let test = TestProfile::new(schema(types, default)).raw();
        test.with(&["main"], 1, State::Running, value).profile
    };
    let mut ours = sample(&types, 1, 10);
    let theirs = sample(&reordered, 2, 40);
    ours.merge(&theirs).expect("same types");
    assert_eq!(ours.check(), Ok(()));
    assert_eq!(ours.schema, schema(&types, 1));
    let rows = |weights: &Weights| -> Vec<Vec<i64>> {
        weights.iter().map(|row| row.values.to_vec()).collect()
    };
    let expected = [vec![1, 10, 5], vec![40, 20, 1]];
    assert_eq!(rows(&ours.weights), expected);
    assert_eq!(
        ours.raw_samples.map(|raw| rows(&raw.weights)),
        Some(expected.to_vec())
    );
}

#[test]
fn a_broken_profile_is_refused() {
    let mut ours = TestProfile::cpu().profile;
    let mut theirs = TestProfile::cpu().profile;
    theirs.meta.frequency = 10_001;
    assert_eq!(
        ours.merge(&theirs),
        Err(MergeError::Invalid(Violation::Frequency(10_001)))
    );
}

#[test]
fn time_spans_are_united_and_counters_summed() {
    let mut ours = TestProfile::cpu().profile;
    ours.meta.start_time_ns = 1_000;
    ours.meta.duration_ns = 100;
    ours.meta.notes = vec!["same".into()];
    ours.meta.missing = vec!["lines".into()];
    ours.meta.counters.dropped_samples = 1;
    let mut theirs = TestProfile::cpu().profile;
    theirs.meta.start_time_ns = 950;
    theirs.meta.duration_ns = 70;
    theirs.meta.notes = vec!["same".into(), "more".into()];
    theirs.meta.missing = vec!["lines".into(), "names".into()];
    theirs.meta.counters.dropped_samples = 2;
    ours.meta.add_root("/a");
    for root in ["/b/", "/a", "/", "b", ""] {
        theirs.meta.add_root(root);
    }
    ours.merge(&theirs).expect("same schema");
    assert_eq!(ours.meta.start_time_ns, 950);
    assert_eq!(ours.meta.duration_ns, 150);
    assert_eq!(ours.meta.notes, ["same", "more"].map(Note::from));
    assert_eq!(ours.meta.roots, ["/a", "/b"]);
    assert_eq!(ours.meta.missing, ["lines", "names"]);
    assert_eq!(ours.meta.counters.dropped_samples, 3);
}

#[test]
fn an_unknown_start_does_not_stretch_the_span() {
    let mut ours = TestProfile::cpu().profile;
    let mut theirs = TestProfile::cpu().profile;
    theirs.meta.start_time_ns = 950;
    theirs.meta.duration_ns = 70;
    ours.merge(&theirs).expect("same schema");
    assert_eq!((ours.meta.start_time_ns, ours.meta.duration_ns), (950, 70));
}

#[test]
fn of_two_periods_the_longer_stays_if_they_are_of_one_kind() {
    let period = |unit: &str, value| {
        let value_type = ValueType::new("space", unit);
        Some(Period { value_type, value })
    };
    let (short, long) = (period("bytes", 512), period("bytes", 4096));
    for (our_frequency, ours, theirs, both) in [
        (0, &short, &long, &long),
        (0, &long, &short, &long),
        (0, &short, &None, &short),
        (0, &None, &short, &short),
        (1000, &None, &short, &None),
        (0, &short, &period("count", 512), &None),
    ] {
        let mut profile = TestProfile::cpu().profile;
        profile.meta.frequency = our_frequency;
        profile.meta.period.clone_from(ours);
        let mut other = TestProfile::cpu().profile;
        other.meta.frequency = 0;
        other.meta.period.clone_from(theirs);
        profile.merge(&other).expect("same schema");
        assert_eq!(profile.meta.period, *both, "{ours:?} {theirs:?}");
    }
}

#[test]
fn raw_samples_are_put_in_order_or_given_up() {
    let with_raw = |start, ns| {
        let test = TestProfile::wall().raw();
        let mut profile = test.with(&["main"], 1, State::Running, ns).profile;
        profile.meta.start_time_ns = start;
        profile
    };
    let mut ours = with_raw(1_000, 50);
    ours.merge(&with_raw(990, 20)).expect("same schema");
    assert_eq!(ours.check(), Ok(()));
    let times = |profile: &Profile| -> Option<Vec<u64>> {
        let samples = profile.raw_samples.as_ref()?;
        Some(samples.times_ns.clone())
    };
    assert_eq!(times(&ours), Some(vec![20, 60]));

    let without = TestProfile::wall().with(&["main"], 1, State::Running, 1);
    ours.merge(&without.profile).expect("same schema");
    assert_eq!(times(&ours), None);
    assert_eq!(ours.check(), Ok(()));
}

#[test]
fn thread_numbers_that_run_out_are_an_error() {
    let mut ours = TestProfile::cpu().with(&["main"], u32::MAX, State::Running, 1);
    let theirs = TestProfile::cpu().with(&["main"], 1, State::Running, 1);
    assert_eq!(
        ours.profile.merge(&theirs.profile),
        Err(MergeError::TooManyThreads)
    );
}

/// Profiles of a few stacks over few names, so that many are equal.
fn profiles() -> impl Strategy<Value = Profile> {
    let names = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5);
    let state = prop::sample::select(State::ALL.to_vec());
    let sample = (names, 0..4u32, state, prop::bool::ANY, 1..1_000i64);
    (prop::collection::vec(sample, 0..20), prop::bool::ANY).prop_map(|(samples, raw)| {
        let mut test = TestProfile::wall();
        if raw {
            test = test.raw();
        }
        for (names, thread, state, labelled, ns) in samples {
            let pairs: &[_] = if labelled { &[("key", "value")] } else { &[] };
            let labels = test.labels(pairs);
            test.add(&names, thread, labels, state, ns);
        }
        test.profile
    })
}

/// The times by what they are of: a state, a function as leaf, a function anywhere.
fn sums(profile: &Profile) -> BTreeMap<(&'static str, String), i64> {
    let mut sums = BTreeMap::new();
    for row in profile.weights.iter() {
        let mut add = |kind, name: String| {
            *sums.entry((kind, name)).or_default() += row.value(TIME);
        };
        add("state", format!("{:?}", row.key.state));
        let frames = profile.display_stack(row.key);
        let names: Vec<_> = frames
            .map(|frame| profile.frame_text(frame).name.to_string())
            .collect();
        add("leaf", names[0].clone());
        for name in BTreeSet::from_iter(names) {
            add("anywhere", name);
        }
    }
    sums
}

proptest! {
    #[test]
    fn what_is_built_is_valid(profile in profiles()) {
        prop_assert_eq!(profile.check(), Ok(()));
    }

    #[test]
    fn merging_adds_totals(mut ours in profiles(), theirs in profiles()) {
        let mut sums = sums(&ours);
        for (key, sum) in self::sums(&theirs) {
            *sums.entry(key).or_default() += sum;
        }
        let samples = ours.sample_count().zip(theirs.sample_count());
        let samples = samples.map(|(one, two)| one + two);
        ours.merge(&theirs).expect("same schema");
        prop_assert_eq!(ours.check(), Ok(()));
        prop_assert_eq!(self::sums(&ours), sums);
        prop_assert_eq!(ours.sample_count(), samples);
    }

    #[test]
    fn merging_into_an_empty_profile_copies(theirs in profiles()) {
        let mut ours = TestProfile::wall().profile;
        ours.merge(&theirs).expect("same schema");
        prop_assert_eq!(sums(&ours), sums(&theirs));
        prop_assert_eq!(ours.weights.len(), theirs.weights.len());
    }
}

#[test]
fn what_is_too_large_together_is_folded_and_counts_add_up() {
    let part = |names: [&str; 2]| {
        TestProfile::wall()
            .with(&["main", names[0], "x", "leaf"], 1, State::Running, 3)
            .with(&["main", names[1], "y", "leaf"], 1, State::Running, 4)
            .profile
    };
    let limits = FoldLimits {
        nodes: 8,
        rows: usize::MAX,
    };
    let mut whole = part(["a", "b"]);
    whole
        .merge_within(limits, &part(["c", "d"]))
        .expect("the same schema");
    assert!(whole.check().is_ok());
    assert!(whole.tree.len() <= 8, "{}", whole.tree.len());
    assert_eq!(whole.sum(whole.schema.default_column()), 14);
    let folded = whole.meta.counters.folded_ns;
    assert_eq!((folded > 0, folded), (true, whole.folded().ns));
    let mut twice = whole.clone();
    twice.merge(&whole).expect("the same schema");
    assert_eq!(twice.meta.counters.folded_ns, 2 * folded);
}

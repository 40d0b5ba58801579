//! Tests of merging, by example and by property.

use super::*;
use crate::test_profile::TestProfile;
use crate::{Mode, State, Totals};
use proptest::prelude::*;

#[test]
fn equal_stacks_share_their_nodes_and_threads_are_kept_apart() {
    let mut ours = TestProfile::new(Mode::Wall)
        .with(&["main", "work"], 1, State::Running, 10)
        .with(&[], 0, State::Running, 1)
        .profile;
    let theirs = TestProfile::new(Mode::Wall)
        .with(&["main", "other"], 1, State::Running, 5)
        .with(&["main", "work"], 1, State::Running, 20)
        .with(&[], 0, State::Running, 2)
        .profile;
    ours.merge(&theirs).expect("same mode");

    assert_eq!(ours.check(), Ok(()));
    assert_eq!(ours.tree.len(), 3);
    let seqs: Vec<u32> = ours.threads.iter().map(|thread| thread.seq).collect();
    assert_eq!(seqs, [1, 2]);
    let exited = ours.weights.iter().find(|weight| weight.thread == 0);
    assert_eq!(exited.map(|weight| weight.values.wall_ns), Some(3));
    assert_eq!(Totals::of(&ours).weight_ns, 38);
}

#[test]
fn different_modes_are_refused_and_change_nothing() {
    let mut ours = TestProfile::new(Mode::Cpu)
        .with(&["main"], 1, State::Running, 1)
        .profile;
    let theirs = TestProfile::new(Mode::Wall).profile;
    let error = ours.merge(&theirs).expect_err("modes differ");
    let (ours_mode, theirs_mode) = ("cpu", "wall");
    assert_eq!(
        error,
        MergeError::Mode {
            ours: ours_mode,
            theirs: theirs_mode
        }
    );
    assert_eq!(Totals::of(&ours).weight_ns, 1);
}

#[test]
fn a_broken_profile_is_refused() {
    let mut ours = TestProfile::new(Mode::Cpu).profile;
    let mut theirs = TestProfile::new(Mode::Cpu).profile;
    theirs.meta.frequency = 0;
    assert_eq!(
        ours.merge(&theirs),
        Err(MergeError::Invalid(Violation::Frequency(0)))
    );
}

#[test]
fn time_spans_are_united_and_counters_summed() {
    let mut ours = TestProfile::new(Mode::Cpu).profile;
    ours.meta.start_time_ns = 1_000;
    ours.meta.duration_ns = 100;
    ours.meta.comments = vec!["same".into()];
    ours.meta.counters.dropped_samples = 1;
    let mut theirs = TestProfile::new(Mode::Cpu).profile;
    theirs.meta.start_time_ns = 950;
    theirs.meta.duration_ns = 70;
    theirs.meta.comments = vec!["same".into(), "more".into()];
    theirs.meta.counters.dropped_samples = 2;
    ours.merge(&theirs).expect("same mode");
    assert_eq!(ours.meta.start_time_ns, 950);
    assert_eq!(ours.meta.duration_ns, 150);
    assert_eq!(ours.meta.comments, ["same", "more"]);
    assert_eq!(ours.meta.counters.dropped_samples, 3);
}

#[test]
fn an_unknown_start_does_not_stretch_the_span() {
    let mut ours = TestProfile::new(Mode::Cpu).profile;
    let mut theirs = TestProfile::new(Mode::Cpu).profile;
    theirs.meta.start_time_ns = 950;
    theirs.meta.duration_ns = 70;
    ours.merge(&theirs).expect("same mode");
    assert_eq!((ours.meta.start_time_ns, ours.meta.duration_ns), (950, 70));
}

#[test]
fn raw_samples_are_put_in_order_or_given_up() {
    let with_raw = |start, ns| {
        let test = TestProfile::new(Mode::Wall).raw();
        let mut profile = test.with(&["main"], 1, State::Running, ns).profile;
        profile.meta.start_time_ns = start;
        profile
    };
    let mut ours = with_raw(1_000, 50);
    ours.merge(&with_raw(990, 20)).expect("same mode");
    assert_eq!(ours.check(), Ok(()));
    let times = |profile: &Profile| -> Option<Vec<u64>> {
        let samples = profile.raw_samples.as_ref()?;
        Some(samples.iter().map(|sample| sample.time_ns).collect())
    };
    assert_eq!(times(&ours), Some(vec![20, 60]));

    let without = TestProfile::new(Mode::Wall).with(&["main"], 1, State::Running, 1);
    ours.merge(&without.profile).expect("same mode");
    assert_eq!(times(&ours), None);
    assert_eq!(ours.check(), Ok(()));
}

#[test]
fn thread_numbers_that_run_out_are_an_error() {
    let mut ours = TestProfile::new(Mode::Cpu).with(&["main"], u32::MAX, State::Running, 1);
    let theirs = TestProfile::new(Mode::Cpu).with(&["main"], 1, State::Running, 1);
    assert_eq!(
        ours.profile.merge(&theirs.profile),
        Err(MergeError::TooManyThreads)
    );
}

/// Profiles of a few stacks over few names, so that many are equal.
fn profiles() -> impl Strategy<Value = Profile> {
    let names = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5);
    let state = prop::sample::select(State::ALL.to_vec());
    let sample = (names, 0..4u32, state, prop::bool::ANY, 1..1_000u64);
    (prop::collection::vec(sample, 0..20), prop::bool::ANY).prop_map(|(samples, raw)| {
        let mut test = TestProfile::new(Mode::Wall);
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

proptest! {
    #[test]
    fn what_is_built_is_valid(profile in profiles()) {
        prop_assert_eq!(profile.check(), Ok(()));
    }

    #[test]
    fn merging_adds_totals(mut ours in profiles(), theirs in profiles()) {
        let (one, two) = (Totals::of(&ours), Totals::of(&theirs));
        ours.merge(&theirs).expect("same mode");
        prop_assert_eq!(ours.check(), Ok(()));
        let both = Totals::of(&ours);
        prop_assert_eq!(both.weight_ns, one.weight_ns + two.weight_ns);
        prop_assert_eq!(both.count, one.count + two.count);
        for state in State::ALL {
            let sum = one.state(state).weight_ns + two.state(state).weight_ns;
            prop_assert_eq!(both.state(state).weight_ns, sum);
        }
        for function in &both.functions {
            let in_part = |totals: &Totals| {
                let same = totals.functions.iter().find(|part| part.name == function.name);
                same.map_or((0, 0), |part| (part.self_ns, part.total_ns))
            };
            let (first, second) = (in_part(&one), in_part(&two));
            prop_assert_eq!(function.self_ns, first.0 + second.0);
            prop_assert_eq!(function.total_ns, first.1 + second.1);
        }
    }

    #[test]
    fn merging_into_an_empty_profile_copies(theirs in profiles()) {
        let mut ours = TestProfile::new(Mode::Wall).profile;
        ours.merge(&theirs).expect("same mode");
        prop_assert_eq!(Totals::of(&ours), Totals::of(&theirs));
        prop_assert_eq!(ours.weights.len(), theirs.weights.len());
    }
}

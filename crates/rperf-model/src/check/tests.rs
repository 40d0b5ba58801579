//! Tests of the validity check: each one breaks one rule.

use super::*;
use crate::test_support::test_profile::TestProfile;
use crate::{Frame, FrameId, LabelSetId, Node, RawSamples, State, Thread, Weights};

fn good() -> Profile {
    let mut test = TestProfile::wall().raw();
    let labels = test.labels(&[("request", "abc")]);
    test.add(&["main", "work"], 1, labels, State::Running, 10);
    test.add(&["main", "work"], 2, labels, State::GvlWait, 20);
    test.add(&[], 0, LabelSetId(0), State::Running, 20);
    test.profile
}

fn violations(profile: &Profile) -> Vec<Violation> {
    profile.check().expect_err("the profile is broken")
}

#[test]
fn a_built_profile_is_accepted() {
    assert_eq!(good().check(), Ok(()));
}

#[test]
fn frequencies_out_of_range_are_found() {
    let mut profile = good();
    profile.meta.frequency = 0;
    assert_eq!(profile.check(), Ok(()));
    profile.meta.frequency = 10_001;
    assert_eq!(violations(&profile), [Violation::Frequency(10_001)]);
}

#[test]
fn unknown_strings_and_frames_are_found() {
    let mut profile = good();
    profile.frames.intern(Frame {
        name: StringId(99),
        path: StringId(0),
        first_line: 0,
    });
    profile.tree.intern(Node {
        parent: NodeId::ROOT,
        frame: FrameId(77),
        line: 0,
    });
    let found = violations(&profile);
    assert_eq!(
        found[0].to_string(),
        "frame 2 names string 99, which is not in the table"
    );
    assert_eq!(found[1], Violation::UnknownFrame { node: 3, frame: 77 });
}

#[test]
fn threads_and_labels_may_be_there_once_only() {
    let mut profile = good();
    profile.threads.push(Thread {
        seq: 2,
        name: StringId(0),
    });
    let key = profile.strings.intern("request");
    profile.label_sets.intern(vec![(key, key), (key, key)]);
    let key = "request".to_string();
    assert_eq!(
        violations(&profile),
        [
            Violation::DuplicateLabel { set: 2, key },
            Violation::DuplicateThread(2)
        ]
    );
}

#[test]
fn rows_that_name_what_is_not_there_are_found() {
    let mut profile = good();
    profile.raw_samples = None;
    let mut changes = [(9, 1, 1), (2, 8, 1), (0, 0, 7)].into_iter();
    profile.weights.change_keys(|key| {
        let (node, thread, labels) = changes.next().expect("three rows");
        (key.node, key.thread, key.labels) = (NodeId(node), thread, LabelSetId(labels));
    });
    let row = Row::Weight;
    assert_eq!(
        violations(&profile),
        [
            Violation::UnknownNode {
                row: row(0),
                node: 9
            },
            Violation::UnknownThread {
                row: row(1),
                thread: 8
            },
            Violation::UnknownLabels {
                row: row(2),
                labels: 7
            },
        ]
    );
}

#[test]
fn duplicate_and_zero_weights_are_found() {
    let mut profile = good();
    profile.raw_samples = None;
    let key = profile.weights.get(0).expect("a row").key;
    profile.weights.push(key, &[0, 0, 0]);
    assert_eq!(
        violations(&profile),
        [
            Violation::DuplicateWeight(Row::Weight(3)),
            Violation::ZeroWeight(Row::Weight(3))
        ]
    );
}

#[test]
fn raw_samples_must_be_in_order_and_add_up() {
    let mut profile = good();
    let samples = profile.raw_samples.take().expect("kept");
    let mut changed = RawSamples::new(3);
    for (row, (time_ns, weight)) in samples.iter().enumerate() {
        let mut values = weight.values.to_vec();
        values[1] += i64::from(row == 2);
        let time_ns = if row == 1 { 3 } else { time_ns };
        changed.push(time_ns, weight.key, &values);
    }
    profile.raw_samples = Some(changed);
    assert_eq!(
        violations(&profile),
        [
            Violation::RawSampleOrder(Row::RawSample(1)),
            Violation::RawSampleSum { node: 0, thread: 0 }
        ]
    );
}

#[test]
fn rows_must_have_a_value_for_each_type_and_samples_a_time() {
    let mut profile = good();
    profile.weights = Weights::new(2);
    let mut samples = RawSamples::new(4);
    samples.times_ns.push(1);
    profile.raw_samples = Some(samples);
    let texts: Vec<_> = violations(&profile)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        texts,
        [
            "weights have 2 values each, but there are 3 value types",
            "raw samples have 4 values each, but there are 3 value types",
            "there are 0 raw samples, but 1 times",
        ]
    );
}

#[test]
fn findings_end_at_a_hundred() {
    let mut profile = good();
    profile.raw_samples = None;
    let key = profile.weights.get(0).expect("a row").key;
    for _ in 0..1000 {
        profile.weights.push(key, &[1, 2, 3]);
    }
    assert_eq!(violations(&profile).len(), MAX_VIOLATIONS);
}

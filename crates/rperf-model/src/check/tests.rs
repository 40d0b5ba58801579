//! Tests of the validity check: each one breaks one rule.

use super::*;
use crate::test_profile::TestProfile;
use crate::{Frame, FrameId, LabelSetId, Mode, Node, State, Thread};

fn good() -> Profile {
    let mut test = TestProfile::new(Mode::Wall).raw();
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
    for frequency in [0, 10_001] {
        let mut profile = good();
        profile.meta.frequency = frequency;
        assert_eq!(violations(&profile), [Violation::Frequency(frequency)]);
    }
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
    profile.weights[0].node = NodeId(9);
    profile.weights[1].thread = 8;
    profile.weights[2].labels = LabelSetId(7);
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
    let mut zero = profile.weights[0];
    zero.values = Default::default();
    profile.weights.push(zero);
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
    let samples = profile.raw_samples.as_mut().expect("kept");
    samples[1].time_ns = 3;
    samples[2].weight.values.wall_ns += 1;
    assert_eq!(
        violations(&profile),
        [
            Violation::RawSampleOrder(Row::RawSample(1)),
            Violation::RawSampleSum { node: 0, thread: 0 }
        ]
    );
}

#[test]
fn findings_end_at_a_hundred() {
    let mut profile = good();
    profile.raw_samples = None;
    profile.weights = vec![profile.weights[0]; 1000];
    assert_eq!(violations(&profile).len(), MAX_VIOLATIONS);
}

//! Tests of the reader with other tools' and hostile profiles. The way there and
//! back of our own is in tests/integration.

use super::*;
use prost::bytes::Bytes;
use rperf_model::{Period, State, ValueType, Weight};

/// A profile as another tool might make it: `main` calls `work`, which is inlined
/// in one location together with `helper`.
fn other_tools() -> proto::Profile {
    let texts = [
        "",
        "cpu",
        "us",
        "main",
        "work",
        "helper",
        "a.rb",
        "bytes",
        "size",
        "/bin/prog",
    ];
    let line = |function_id, line| proto::Line { function_id, line };
    let function = |id, name| proto::Function {
        id,
        name,
        filename: 6,
        ..Default::default()
    };
    let location = |id, line| proto::Location {
        id,
        mapping_id: 70,
        address: 0x1f0 + id,
        line,
    };
    proto::Profile {
        string_table: texts.iter().map(|text| (*text).into()).collect(),
        sample_type: vec![proto::ValueType { r#type: 1, unit: 2 }],
        period_type: Some(proto::ValueType { r#type: 1, unit: 2 }),
        period: 10_000,
        mapping: vec![proto::Mapping {
            id: 70,
            filename: 9,
            ..Default::default()
        }],
        function: vec![function(30, 3), function(10, 4), function(20, 5)],
        location: vec![
            location(7, vec![line(30, 1)]),
            location(9, vec![line(20, 3), line(10, 2)]),
            location(8, vec![]),
        ],
        sample: vec![encoded(&proto::Sample {
            location_id: vec![8, 9, 7],
            value: vec![5],
            label: vec![proto::Label {
                key: 8,
                num: 64,
                num_unit: 7,
                ..Default::default()
            }],
        })],
        ..Default::default()
    }
}

fn encoded(sample: &proto::Sample) -> Bytes {
    sample.encode_to_vec().into()
}

fn change_sample(message: &mut proto::Profile, change: impl FnOnce(&mut proto::Sample)) {
    let bytes = message.sample[0].clone();
    let mut sample = proto::Sample::decode(bytes).expect("a sample");
    change(&mut sample);
    message.sample[0] = encoded(&sample);
}

fn read_message(message: &proto::Profile) -> Result<Profile, ReadError> {
    let profile = read(&mut message.encode_to_vec().as_slice())?;
    assert_eq!(profile.check(), Ok(()));
    Ok(profile)
}

fn first_weight(profile: &Profile) -> Weight<'_> {
    profile.weights.get(0).expect("a weight")
}

fn names(profile: &Profile, weight: Weight<'_>) -> Vec<String> {
    let stack = profile.display_stack(weight.key);
    stack
        .map(|frame| profile.frame_text(frame).name.to_string())
        .collect()
}

fn damaged(message: &proto::Profile) -> String {
    match read_message(message) {
        Err(ReadError::Damaged(what)) => what,
        other => panic!("not damaged: {other:?}"),
    }
}

#[test]
fn a_profile_of_another_tool_is_read() {
    let profile = read_message(&other_tools()).expect("a good profile");
    let value_type = ValueType::new("cpu", "us");
    assert_eq!(profile.schema.default_type(), &value_type);
    assert_eq!(profile.schema.len(), 1);
    let value = 10_000;
    assert_eq!(profile.meta.period, Some(Period { value_type, value }));
    assert_eq!(profile.meta.frequency, 100);
    assert_eq!(profile.meta.program, "/bin/prog");
    let weight = first_weight(&profile);
    assert_eq!(weight.values, [5]);
    assert_eq!(profile.sample_count(), None);
    assert_eq!(names(&profile, weight), ["0x1f8", "helper", "work", "main"]);
    let labels = profile.label_sets.get(weight.key.labels);
    let text = |id| profile.strings.get(id);
    assert_eq!(
        labels
            .iter()
            .map(|&(key, value)| (text(key), text(value)))
            .collect::<Vec<_>>(),
        [("size", "64")]
    );
}

#[test]
fn a_state_is_taken_from_the_tag_if_there_is_no_leaf_for_it() {
    let mut message = other_tools();
    let first = message.string_table.len() as i64;
    message
        .string_table
        .extend([b"%GC".to_vec(), b"sweep".to_vec()]);
    let label = proto::Label {
        key: first,
        str: first + 1,
        ..Default::default()
    };
    change_sample(&mut message, |sample| sample.label = vec![label]);
    let profile = read_message(&message).expect("a good profile");
    assert_eq!(first_weight(&profile).key.state, State::GcSweeping);
    assert_eq!(profile.label_sets.len(), 1);
}

#[test]
fn a_thread_name_without_a_number_is_a_label() {
    let mut message = other_tools();
    let first = message.string_table.len() as i64;
    message
        .string_table
        .extend([b"thread".to_vec(), b"puma 1".to_vec()]);
    let label = proto::Label {
        key: first,
        str: first + 1,
        ..Default::default()
    };
    change_sample(&mut message, |sample| sample.label = vec![label, label]);
    let profile = read_message(&message).expect("a good profile");
    assert_eq!(
        profile
            .label_sets
            .get(first_weight(&profile).key.labels)
            .len(),
        1
    );
    assert_eq!(profile.threads[0].name, StringId::default());
}

#[test]
fn text_that_is_not_utf_8_is_replaced() {
    let mut message = other_tools();
    message.string_table[3] = b"ma\xffin".to_vec();
    let profile = read_message(&message).expect("a good profile");
    let names = names(&profile, first_weight(&profile));
    assert_eq!(names[3], "ma\u{fffd}in");
}

#[test]
fn ids_that_lead_nowhere_are_refused() {
    let mut message = other_tools();
    change_sample(&mut message, |sample| sample.location_id.push(99));
    assert_eq!(damaged(&message), "there is no location with id 99");
    let mut message = other_tools();
    message.location[0].line[0].function_id = 98;
    assert_eq!(damaged(&message), "there is no function with id 98");
    let mut message = other_tools();
    message.function[0].filename = 1_000;
    assert_eq!(damaged(&message), "there is no string 1000");
    let mut message = other_tools();
    message.comment.push(-1);
    assert_eq!(damaged(&message), "there is no string -1");
}

#[test]
fn ids_that_are_0_or_there_twice_are_refused() {
    let mut message = other_tools();
    message.location[1].id = 7;
    assert_eq!(damaged(&message), "a location has an id twice");
    let mut message = other_tools();
    message.function[1].id = 0;
    assert_eq!(damaged(&message), "a function has id 0");
}

#[test]
fn a_first_string_that_is_not_empty_is_refused() {
    let mut message = other_tools();
    message.string_table[0] = b"x".to_vec();
    assert_eq!(damaged(&message), "string 0 is not empty");
}

#[test]
fn thread_numbers_that_can_t_be_are_refused() {
    let mut message = other_tools();
    message.string_table[8] = b"thread_seq".to_vec();
    change_sample(&mut message, |sample| sample.label[0].num = -1);
    assert_eq!(damaged(&message), "there can be no thread number -1");
}

#[test]
fn samples_have_a_value_for_each_type_and_any_value_will_do() {
    let mut message = other_tools();
    for (values, found) in [(vec![], 0), (vec![1, 2], 2)] {
        change_sample(&mut message, |sample| sample.value = values);
        let expected = format!("a sample has {found} values, but there are 1 sample types");
        assert_eq!(damaged(&message), expected);
    }
    change_sample(&mut message, |sample| sample.value = vec![-7]);
    let profile = read_message(&message).expect("a good profile");
    assert_eq!(first_weight(&profile).values, [-7]);
}

#[test]
fn empty_input_and_other_files_are_refused() {
    for input in [&b""[..], b"\x1f", b"\x1f\x8b", b"<main>;work 10\n"] {
        assert!(read(&mut &*input).is_err(), "{input:?}");
    }
}

#[test]
fn what_grows_beyond_the_limits_is_refused() {
    let message = other_tools().encode_to_vec();
    let len = message.len() as u64;
    let limits = || Limits {
        bytes: len,
        rows: 10,
        memory: LIMITS.memory,
        text: 45,
        frames: FrameLimits {
            all: 4,
            unshared: 4,
        },
    };
    let read = |change: fn(&mut Limits)| {
        let mut limits = limits();
        change(&mut limits);
        read_within(&limits, &mut message.as_slice())
    };
    assert!(read(|_| ()).is_ok());
    for (result, beyond) in [
        (read(|limits| limits.bytes -= 1), "bytes"),
        (read(|limits| limits.rows = 9), "strings"),
        (read(|limits| limits.memory = 100), "bytes in memory"),
        (read(|limits| limits.text = 10), "bytes of names"),
        (read(|limits| limits.frames.all = 3), "frames in all stacks"),
        (
            read(|limits| limits.frames.unshared = 3),
            "frames that stacks don't share",
        ),
    ] {
        match result {
            Err(ReadError::TooLarge { unit, .. }) => assert_eq!(unit, beyond),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_profile_of_our_own_may_have_more_than_others() {
    let mut message = other_tools();
    message.location[0].line = vec![
        proto::Line {
            function_id: 30,
            line: 1
        };
        1 << 10
    ];
    message.sample = vec![message.sample[0].clone(); 1 << 10];
    let bytes = message.encode_to_vec();
    let limits = Limits {
        frames: FrameLimits {
            all: 1 << 19,
            ..LIMITS.frames
        },
        ..LIMITS
    };
    let beyond = read_within(&limits, &mut bytes.as_slice());
    assert!(matches!(beyond, Err(ReadError::TooLarge { .. })));
    let profile = read_own(&mut bytes.as_slice()).expect("taken");
    assert_eq!(profile.check(), Ok(()));
    assert_eq!(first_weight(&profile).values, [5 << 10]);
}

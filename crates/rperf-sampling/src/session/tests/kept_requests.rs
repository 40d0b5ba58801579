//! The slowest requests of a session, which are told apart from all others.

use super::*;
use rperf_model::label_keys::{LATENCY, REQUEST};
use rperf_model::{AmongSlowest, LatencyClass, RequestId};
use rperf_vm::RequestNumber;
use std::collections::BTreeMap;

/// Records samples of a request, each on a stack of its own.
fn samples(session: &mut Session, request: u32, stacks: std::ops::Range<usize>) {
    let labels = LabelSet::of([("endpoint".into(), "/".into())].into());
    let labels = labels.in_request(RequestNumber(request));
    for stack in stacks {
        record(session, &[stack, 1], Some(&labels));
    }
}

fn end(session: &mut Session, request: u32, place: AmongSlowest) {
    session.end_request(RequestNumber(request), LatencyClass::Tail, place);
}

/// A request that is one of the slowest, with or without another one that makes room.
fn slow(session: &Session, in_place_of: Option<u32>) -> AmongSlowest {
    let session = session.request_word();
    AmongSlowest {
        is_one: true,
        in_place_of: in_place_of.map(|number| RequestId { session, number }),
    }
}

/// The time of samples by request: 0 for all that are not told apart.
fn by_request(profile: &Profile, word: u32) -> BTreeMap<u32, i64> {
    let mut sums = BTreeMap::new();
    let column = profile.schema.default_column();
    for row in profile.weights.iter() {
        let of = |key| {
            let mut pairs = profile.label_sets.get(row.key.labels).iter();
            let value = pairs.find(|pair| profile.strings.get(pair.0) == key)?.1;
            Some(profile.strings.get(value))
        };
        assert!(of(LATENCY).is_some());
        let number = of(REQUEST).map_or(0, |label| {
            let word = format!("{word:08x}-");
            let number = label.strip_prefix(&word).expect("the session's word");
            number.parse().expect("a number")
        });
        *sums.entry(number).or_insert(0) += row.value(column);
    }
    sums
}

#[test]
fn a_request_stays_told_apart_over_epochs_until_a_slower_one_takes_its_place() {
    let mut session = session();
    let place = slow(&session, None);
    for request in 1..=3 {
        samples(&mut session, request, 10..30);
        end(&mut session, request, place);
    }
    end_epoch(&mut session);
    // Remainders.
    samples(&mut session, 1, 50..55);
    samples(&mut session, 2, 50..55);
    session.begin_epoch_end();
    // Its samples are in an epoch with names, in one that has none yet, and in the present one.
    samples(&mut session, 2, 60..61);
    samples(&mut session, 4, 60..70);
    let place = slow(&session, Some(2));
    end(&mut session, 4, place);
    name_frames(&mut session, usize::MAX);
    samples(&mut session, 2, 70..71);
    let word = session.request_word();
    let profile = profile(session.stop(clock::monotonic_ns()));
    let expected = [(0, 20 + 5 + 1 + 1), (1, 20 + 5), (3, 20), (4, 10)];
    let expected = expected.map(|(request, samples)| (request, 10 * samples));
    assert_eq!(by_request(&profile, word), BTreeMap::from(expected));
}

#[test]
fn what_is_cleared_is_told_apart_there_and_not_later() {
    let mut session = session();
    let word = session.request_word();
    let place = slow(&session, None);
    samples(&mut session, 1, 10..30);
    end(&mut session, 1, place);
    let cleared = profile(session.clear(clock::monotonic_ns(), 1));
    assert_eq!(by_request(&cleared, word), BTreeMap::from([(1, 200)]));
    samples(&mut session, 1, 10..12);
    samples(&mut session, 2, 10..15);
    end(&mut session, 2, place);
    let rest = profile(session.stop(clock::monotonic_ns()));
    assert_eq!(by_request(&rest, word), BTreeMap::from([(0, 20), (2, 50)]));
}

#[test]
fn one_with_too_many_stacks_is_as_all_others_and_takes_no_room() {
    let mut session = session();
    let place = slow(&session, None);
    samples(&mut session, 1, 10..5_000);
    end(&mut session, 1, place);
    samples(&mut session, 2, 10..15);
    end(&mut session, 2, place);
    let word = session.request_word();
    let profile = profile(session.stop(clock::monotonic_ns()));
    let expected = BTreeMap::from([(0, 10 * 4_990), (2, 50)]);
    assert_eq!(by_request(&profile, word), expected);
}

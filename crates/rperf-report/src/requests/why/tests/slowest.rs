//! Tests of what is told of the slowest requests, one by one.

use super::*;
use rperf_model::label_keys::REQUEST;
use rperf_model::{RequestId, Slowest};

#[test]
fn a_part_that_one_request_has_most_of_is_told_by_that() {
    let told = |running: u64, class: &str| {
        let mut profile = profile(30);
        let odd = Slowest {
            id: RequestId {
                session: 7,
                number: 1,
            },
            ended_ns: 4,
            values: RequestValues {
                wall: (running + 500) * MS,
                running: running * MS,
                blocked: 500 * MS,
                ..RequestValues::default()
            },
        };
        profile.requests[1].add(LatencyClass::Tail, odd, true);
        let id = odd.id.to_string();
        let pairs = [
            ("endpoint", "GET /orders"),
            (LATENCY, class),
            (REQUEST, id.as_str()),
        ];
        let pairs =
            pairs.map(|(key, value)| (profile.strings.intern(key), profile.strings.intern(value)));
        let labels = profile.label_sets.intern(pairs.into_iter().collect());
        let key = WeightKey {
            node: node(&mut profile, &[RENDER]),
            thread: 1,
            labels,
            state: State::Running,
        };
        profile.weights.push(key, &[1, (running * MS) as i64, 0]);
        let why = Why::of(&profile, &profile.requests[1]);
        let label = |part| why.mostly_in(part).and_then(|it| it.label.clone());
        [Part::Running, Part::Blocked, Part::Gc].map(label)
    };
    // Each of the 30 others takes 2 ms more than typical ones: 70 ms are more than half of all 130, 30 ms of 90 aren't.
    assert_eq!(told(80, "tail"), [Some("00000007-1".into()), None, None]);
    assert_eq!(told(40, "tail"), [None, None, None]);
    assert_eq!(
        told(80, "first"),
        [None, None, None],
        "its time isn't in the tail's"
    );
}

#[test]
fn a_slow_request_has_its_label_if_samples_have_it() {
    let mut profile = profile(19);
    let [known, lost, unknown] = [7, 8, 0].map(|number| RequestId { session: 3, number });
    for (id, wall) in [(known, 3), (lost, 2), (unknown, 1)] {
        let took = RequestValues {
            wall: wall * 1_000 * MS,
            ..RequestValues::default()
        };
        let slow = Slowest {
            id,
            ..took.ended_at(1)
        };
        profile.requests[1].add(LatencyClass::Tail, slow, true);
    }
    for (label, has_rows) in [("00000003-7", true), ("00000003-8", false)] {
        let [key, value] = ["%request", label].map(|text| profile.strings.intern(text));
        let labels = profile.label_sets.intern(vec![(key, value)]);
        let row = profile.weights.get(0).filter(|_| has_rows);
        if let Some((key, values)) = row.map(|it| (it.key, it.values.to_vec())) {
            profile.weights.push(WeightKey { labels, ..key }, &values);
        }
    }
    let why = Why::of(&profile, &profile.requests[1]);
    let labels: Vec<_> = why.slowest.iter().map(|it| it.label.as_deref()).collect();
    assert_eq!(labels, [Some("00000003-7"), None, None, None, None]);
}

//! Tests of samples that wait for the end of their request.

use super::*;
use crate::Times;
use crate::collect::packed_labels::PackedLabels;
use crate::collect::sample::{RequestNews, SampleSums, SumLimits};
use crate::collect::sample_key::SampleKey;
use proptest::prelude::*;
use rperf_model::{LabelSetId, NodeId, State};
use rustc_hash::FxHashMap;

const LIMITS: SumLimits = SumLimits {
    aggregate: true,
    rows: 1 << 20,
};

fn sample(request: u32, node: u32, wall_ns: u64) -> Sample {
    Sample {
        time_ns: 0,
        times: Times {
            wall_ns,
            cpu_ns: wall_ns / 2,
            blame_ns: wall_ns / 3,
            waited_for_ns: wall_ns / 5,
        },
        node: NodeId(node),
        thread: 1 + request % 3,
        labels: LabelSetId(1 + request % 5),
        request: RequestNumber(request),
        state: State::Running,
        gc: None,
        count: 1,
    }
}

fn ended(request: u32, class: LatencyClass) -> Sample {
    ended_as(request, class, false)
}

fn ended_as(request: u32, class: LatencyClass, is_kept: bool) -> Sample {
    let news = RequestNews::Ended { class, is_kept };
    Sample::of_request(RequestNumber(request), news)
}

fn let_go(request: u32) -> Sample {
    Sample::of_request(RequestNumber(request), RequestNews::LetGo)
}

/// What comes out of these samples.
fn put(requests: &mut OpenRequests, samples: &[Sample]) -> Vec<(u64, Option<LatencyClass>)> {
    let mut out = Vec::new();
    for sample in samples {
        requests.take(sample, &mut |it: &Sample| {
            out.push((it.times.wall_ns, PackedLabels::of(it.labels).class));
        });
    }
    out
}

#[test]
fn samples_wait_for_the_end_of_their_request_and_remainders_get_its_class() {
    let mut requests = OpenRequests::default();
    let out = put(
        &mut requests,
        &[sample(1, 1, 10), sample(0, 1, 20), sample(2, 1, 30)],
    );
    assert_eq!(out, [(20, None)]);
    let out = put(
        &mut requests,
        &[ended(1, LatencyClass::Tail), sample(1, 1, 5)],
    );
    let tail = Some(LatencyClass::Tail);
    assert_eq!(out, [(10, tail), (5, tail)]);
    let mut copies = 0;
    requests.each(|it| {
        assert_eq!(PackedLabels::of(it.labels).class, Some(LatencyClass::Open));
        copies += it.times.wall_ns;
    });
    assert_eq!(copies, 30);
    let out = put(&mut requests, &[ended(2, LatencyClass::First)]);
    assert_eq!(out, [(30, Some(LatencyClass::First))]);
    // Another request has its place since.
    let later = 1 + REMEMBERED as u32;
    let out = put(
        &mut requests,
        &[ended(later, LatencyClass::Fast), sample(1, 1, 7)],
    );
    assert_eq!(out, []);
    let mut rest = Vec::new();
    requests.let_go(|it| rest.push(it.times.wall_ns));
    assert_eq!(rest, [7]);
    assert_eq!(requests.samples, 0);
}

#[test]
fn samples_of_a_kept_request_are_told_apart_until_it_is_let_go() {
    let (mut requests, mut sums) = <(OpenRequests, SampleSums)>::default();
    let mut take = |sums: &mut SampleSums, sample| {
        requests.take(&sample, &mut |it: &Sample| sums.add_one(it, LIMITS));
    };
    for request in [1, 2, 3] {
        take(&mut sums, sample(request, 1, 10));
        take(&mut sums, sample(request, 1, 20));
        take(
            &mut sums,
            ended_as(request, LatencyClass::Tail, request < 3),
        );
    }
    // A remainder.
    take(&mut sums, sample(2, 1, 5));
    let mut rows: Vec<_> = sums.kept.iter().collect();
    rows.sort_unstable_by_key(|(request, ..)| request.0);
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(request, key, values)| {
            let class = PackedLabels::of(key.labels).class;
            (request.0, class, values.times.wall_ns)
        })
        .collect();
    let tail = Some(LatencyClass::Tail);
    assert_eq!(rows, [(1, tail, 30), (2, tail, 35)]);
    assert_eq!((sums.sums.len(), sums.kept.rows()), (1, 2));
    take(&mut sums, let_go(2));
    sums.let_go(RequestNumber(2), LIMITS);
    take(&mut sums, sample(2, 1, 7));
    assert_eq!(sums.kept.rows(), 1);
    let rest = sums.sums.values().map(|values| values.times.wall_ns);
    assert_eq!(rest.sum::<u64>(), 30 + 35 + 7);
}

#[test]
fn what_a_request_has_waited_for_takes_a_row_for_each_stack_however_often_it_waits() {
    let mut requests = OpenRequests::default();
    let waited = |node, waited_for_ns| Sample {
        times: Times {
            waited_for_ns,
            ..Times::default()
        },
        count: 0,
        ..sample(1, node, 0)
    };
    for turn in 0..1_000 {
        put(&mut requests, &[waited(turn % 3, 5), waited(9, 7)]);
        assert!(requests.samples <= 4);
    }
    let samples = [sample(1, 9, 10), waited(9, 1), sample(1, 9, 10)];
    put(&mut requests, &samples);
    assert_eq!(requests.samples, 6, "samples stay apart");
    let mut sum = 0;
    requests.let_go(|it| sum += it.times.waited_for_ns);
    assert_eq!(sum, 1_000 * (5 + 7) + 1 + 2 * 2);
    assert_eq!(requests.samples, 0);
}

#[test]
fn beyond_the_bound_the_oldest_requests_samples_go_as_open() {
    let mut requests = OpenRequests::default();
    let long = vec![sample(1, 1, 1); MOST];
    assert_eq!(put(&mut requests, &long), []);
    assert_peak(&requests, MOST);
    // A great many short ones beside it, one sample in ten of which finds a request at work.
    let mut out = Vec::new();
    for number in 2..200_000 {
        if number % 10 == 0 {
            out.extend(put(&mut requests, &[sample(number, 1, 1)]));
        }
        out.extend(put(&mut requests, &[ended(number, LatencyClass::Typical)]));
        assert!(requests.samples <= MOST);
    }
    let open = out.iter().filter(|it| it.1 == Some(LatencyClass::Open));
    assert_eq!(open.count(), MOST, "all of the long one's so far");
    let typical = |it: &&(u64, _)| it.1 == Some(LatencyClass::Typical);
    assert_eq!(out.iter().filter(typical).count(), 19_999);
    assert_peak(&requests, 0);
    assert!(requests.memory() < 1 << 20, "the long one's are let go");
    let out = put(
        &mut requests,
        &[sample(1, 1, 3), ended(1, LatencyClass::Tail)],
    );
    assert_eq!(out, [(3, Some(LatencyClass::Tail))], "what came since");
}

#[test]
fn a_minute_of_ten_thousand_requests_a_second_beside_one_is_all_counted() {
    let (mut requests, mut sums) = <(OpenRequests, SampleSums)>::default();
    let mut take = |sample| {
        requests.take(&sample, &mut |it: &Sample| sums.add_one(it, LIMITS));
        assert!(requests.samples <= MOST);
    };
    let short = 2..600_002;
    for number in short.clone() {
        take(sample(1, 1, 100_000));
        take(sample(number, 2, 90_000));
        take(ended(number, LatencyClass::Typical));
    }
    take(ended(1, LatencyClass::Tail));
    assert_peak(&requests, 0);
    let mut found = FxHashMap::default();
    for (key, values) in &sums.sums {
        let class = PackedLabels::of(key.labels).class;
        *found.entry((key.node.0, class)).or_insert(0) += values.times.wall_ns;
    }
    let (all, open) = (short.len() as u64, 2 * MOST as u64);
    let expected = [
        ((1, Some(LatencyClass::Open)), open * 100_000),
        ((1, Some(LatencyClass::Tail)), (all - open) * 100_000),
        ((2, Some(LatencyClass::Typical)), all * 90_000),
    ];
    assert_eq!(found, FxHashMap::from_iter(expected));
}

/// So many samples of few requests wait, with the memory that the bounds allow: 17 MB for all of them,
/// and no more than that is allotted.
fn assert_peak(requests: &OpenRequests, samples: usize) {
    assert_eq!(requests.samples, samples);
    let bound = (17 << 20) + REMEMBERED * size_of::<u32>();
    assert!(requests.memory() >= samples * size_of::<Sample>());
    assert!(requests.memory() <= bound, "{}", requests.memory());
    let allotted = requests.waiting.values().map(Vec::capacity);
    assert!(allotted.sum::<usize>() * size_of::<Sample>() <= bound);
}

/// What may happen.
#[derive(Debug, Clone)]
enum Event {
    Sample(u32, u32, u64),
    End(u32, LatencyClass, bool),
    LetKeptGo(u32),
    LetGo,
    Look,
}

fn event() -> impl Strategy<Value = Event> {
    let class = || prop::sample::select(LatencyClass::ALL.to_vec());
    prop_oneof![
        8 => (0..12_u32, 1..6_u32, 0..1_000_u64)
            .prop_map(|(request, node, wall)| Event::Sample(request, node, wall)),
        3 => (1..12_u32, class(), any::<bool>())
            .prop_map(|(request, class, is_kept)| Event::End(request, class, is_kept)),
        1 => (1..12_u32).prop_map(Event::LetKeptGo),
        1 => Just(Event::LetGo),
        1 => Just(Event::Look),
    ]
}

/// The sums without classes.
fn plain(sums: &SampleSums) -> FxHashMap<SampleKey, crate::Values> {
    let mut plain: FxHashMap<_, crate::Values> = FxHashMap::default();
    let all = sums.sums.iter().map(|(key, values)| (*key, *values));
    for (mut key, values) in all.chain(sums.kept.iter().map(|(_, key, values)| (key, values))) {
        key.labels = PackedLabels::of(key.labels).number;
        plain.entry(key).or_default().add(values);
    }
    plain
}

proptest! {
    /// Sums over classes are the sums without classes, in each value, at every moment at which somebody
    /// looks.
    #[test]
    fn classes_sum_to_the_whole(events in prop::collection::vec(event(), 0..200)) {
        let (mut whole, mut judged) = <(SampleSums, SampleSums)>::default();
        let mut requests = OpenRequests::default();
        for event in events {
            let news = match event {
                Event::Sample(request, node, wall) => {
                    let sample = sample(request, node, wall);
                    whole.add_one(&sample, LIMITS);
                    sample
                }
                Event::End(request, class, is_kept) => ended_as(request, class, is_kept),
                Event::LetKeptGo(request) => {
                    judged.let_go(RequestNumber(request), LIMITS);
                    let_go(request)
                }
                Event::LetGo => {
                    requests.let_go(|it| judged.add_one(it, LIMITS));
                    prop_assert_eq!(plain(&whole), plain(&judged));
                    continue;
                }
                Event::Look => {
                    let mut seen = judged.clone();
                    requests.each(|it| seen.add_one(it, LIMITS));
                    prop_assert_eq!(plain(&whole), plain(&seen));
                    continue;
                }
            };
            requests.take(&news, &mut |it: &Sample| judged.add_one(it, LIMITS));
        }
        // Of a request all have a class, and of none none has.
        let has_class = |key: &SampleKey| PackedLabels::of(key.labels).class.is_some();
        let is_none = |key: &SampleKey| {
            key.thread == 1 && PackedLabels::of(key.labels).number == LabelSetId(1)
        };
        for key in judged.sums.keys() {
            prop_assert!(has_class(key) || is_none(key));
        }
    }
}

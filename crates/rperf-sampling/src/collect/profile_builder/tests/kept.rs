//! Requests that are told apart from all others, over epochs.

use super::*;
use rperf_model::label_keys::{LATENCY, REQUEST};
use rperf_model::{RequestId, State};

/// An epoch in which the requests 1 to 3 have samples of 10, 20 and 30 ns at the stacks `depths` deep; those
/// in `kept` are told apart.
fn epoch_of_requests(
    depths: std::ops::Range<usize>,
    kept: &[u32],
) -> (CapturedTree, Vec<Arc<ResolvedFrame>>, SampleSums) {
    let stacks: Vec<Vec<usize>> = depths.map(|depth| (1..=depth).collect()).collect();
    let stacks: Vec<&[usize]> = stacks.iter().map(Vec::as_slice).collect();
    let (tree, names, without_requests) = epoch(&stacks);
    let mut sums = SampleSums::default();
    let limits = SumLimits {
        aggregate: true,
        rows: 1 << 10,
    };
    for key in without_requests.sums.into_keys() {
        for request in 1..=3 {
            let is_kept = kept.contains(&request);
            let sample = Sample {
                time_ns: 1,
                times: Times::of(Mode::Wall, 10 * u64::from(request)),
                node: key.node,
                thread: 1,
                labels: with_class(LabelSetId(0), LatencyClass::Tail),
                request: RequestNumber(if is_kept { request } else { 0 }),
                state: State::Running,
                gc: None,
                count: 1,
            };
            sums.add_one(&sample, limits);
        }
    }
    (tree, names, sums)
}

/// The wall time by the label of a request; that of samples without one is at "".
fn by_request(
    profile: &Profile,
    rows: impl Iterator<Item = (LabelSetId, i64)>,
) -> Vec<(String, i64)> {
    let mut sums: BTreeMap<String, i64> = BTreeMap::new();
    for (labels, wall) in rows {
        let of = |key| {
            let mut pairs = profile.label_sets.get(labels).iter();
            let pair = pairs.find(|(it, _)| profile.strings.get(*it) == key);
            pair.map(|(_, value)| profile.strings.get(*value).to_string())
        };
        assert_eq!(of(LATENCY).as_deref(), Some("tail"));
        *sums.entry(of(REQUEST).unwrap_or_default()).or_default() += wall;
    }
    sums.into_iter().collect()
}

#[test]
fn a_request_is_told_apart_in_all_epochs_unless_it_is_let_go() {
    for nodes in [1_000, 8] {
        let mut builder = ProfileBuilder::new(limits(nodes));
        let (tree, names, sums) = epoch_of_requests(1..6, &[1, 2, 3]);
        builder.add(tree.nodes(), &names, sums);
        builder.let_go(RequestNumber(2));
        let (tree, names, sums) = epoch_of_requests(3..13, &[1]);
        builder.add(tree.nodes(), &names, sums);
        assert!(builder.size().nodes <= nodes.max(12));
        assert!(builder.kept_rows() > 0);
        let measured = Measured {
            mode: Mode::Wall,
            blames: false,
            pairs: false,
        };
        let names = SessionNames {
            request_word: 0xAB,
            ..SessionNames::default()
        };
        let profile = builder.finish(measured, names, None);
        assert_eq!(profile.check(), Ok(()));
        let id = |number| {
            let session = 0xAB;
            RequestId { session, number }.to_string()
        };
        let mut expected = vec![
            (String::new(), 20 * 15 + 30 * 10),
            (id(1), 10 * 15),
            (id(3), 30 * 5),
        ];
        expected.sort();
        let rows = profile.weights.iter();
        let rows = rows.map(|it| (it.key.labels, it.values[1]));
        assert_eq!(by_request(&profile, rows), expected, "{nodes}");
    }
}

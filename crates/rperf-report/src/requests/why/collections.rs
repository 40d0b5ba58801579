//! Why the collections ran that slow requests had to wait for, by samples.

use super::means::Means;
use super::texts::{SITES, Texts, classes, judged_keys};
use rperf_model::Order;
use rperf_model::label_keys::GC_CAUSE;
use rperf_model::numbers::signed;
use rperf_model::{Column, LatencyClass, Requests};
use rustc_hash::FxHashMap;

/// A reason why collections ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collections {
    /// The cause, such as `major oldgen`.
    pub cause: String,
    /// Their time in a request.
    pub means: Means,
}

/// The causes of collections whose time grew most; none in profiles that don't know them.
pub(super) fn collections_of(
    texts: &Texts<'_>,
    requests: &Requests,
    wall: Column,
) -> Vec<Collections> {
    let keys = judged_keys(texts.profile);
    let mut sums: FxHashMap<&str, [i64; 2]> = FxHashMap::default();
    for row in texts.profile.weights.iter() {
        if !row.key.state.is_gc() {
            continue;
        }
        let class = match texts.class_of(row.key.labels, requests, &keys) {
            Some(LatencyClass::Typical) => 0,
            Some(LatencyClass::Tail) => 1,
            _ => continue,
        };
        if let Some(cause) = texts.label(row.key.labels, GC_CAUSE) {
            let sum = &mut sums.entry(cause).or_default()[class];
            *sum = sum.saturating_add(row.value(wall));
        }
    }
    let counts = classes(requests).map(|it| signed(it.count.max(1)));
    let causes = sums.into_iter().map(|(cause, sums)| Collections {
        cause: cause.into(),
        means: Means {
            typical: sums[0] / counts[0],
            tail: sums[1] / counts[1],
        },
    });
    let mut causes: Vec<_> = causes.filter(|it| it.means.excess() > 0).collect();
    causes.order_by(|a, b| {
        let rank = |it: &Collections| -it.means.excess();
        rank(a).cmp(&rank(b)).then_with(|| a.cause.cmp(&b.cause))
    });
    causes.truncate(SITES);
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Why;
    use rperf_model::label_keys::LATENCY;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::test_support::node;
    use rperf_model::{RequestValues, State, WeightKey};

    #[test]
    fn causes_are_told_by_the_time_by_which_they_grew() {
        let mut test = TestProfile::wall();
        let profile = &mut test.profile;
        let mut orders = Requests::new("endpoint", "GET /orders");
        for (class, gc) in [(LatencyClass::Typical, 10), (LatencyClass::Tail, 110)] {
            let values = RequestValues {
                wall: gc,
                gc,
                ..RequestValues::default()
            };
            orders.add(class, values.ended_at(1), true);
            orders.add(class, values.ended_at(2), true);
        }
        profile.requests = vec![orders];
        let node = node(profile, &[("Shop#render", "/app/shop.rb", 1, 3)]);
        for (class, state, cause, wall) in [
            ("typical", State::GcMarking, Some("minor newobj"), 20),
            ("tail", State::GcMarking, Some("minor newobj"), 20),
            ("tail", State::GcMarking, Some("major nofree"), 90),
            ("tail", State::GcSweeping, Some("major nofree"), 50),
            ("tail", State::GcSweeping, Some("minor malloc"), 30),
            ("tail", State::GcSweeping, None, 30),
            ("slow", State::GcMarking, Some("major force"), 1_000),
            ("tail", State::Running, Some("minor newobj"), 1_000),
        ] {
            let mut pairs = vec![("endpoint", "GET /orders"), (LATENCY, class)];
            pairs.extend(cause.map(|it| (GC_CAUSE, it)));
            let strings = &mut profile.strings;
            let pairs = pairs.into_iter();
            let pairs = pairs.map(|(key, value)| (strings.intern(key), strings.intern(value)));
            let labels = pairs.collect();
            let key = WeightKey {
                node,
                thread: 1,
                labels: profile.label_sets.intern(labels),
                state,
            };
            profile.weights.push(key, &[1, wall, 0]);
        }
        let profile = &test.profile;
        let why = Why::of(profile, &profile.requests[0]);
        let told = why.collections.iter();
        let told = told.map(|it| (&*it.cause, it.means.tail, why.share_of_collections(it)));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [("major nofree", 70, 70.0), ("minor malloc", 15, 15.0)]
        );
    }
}

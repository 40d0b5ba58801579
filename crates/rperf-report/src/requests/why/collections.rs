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

/// The causes of collections whose time grew most, and by how much all grew together whose time grew: shares
/// are of that, because the time of other causes may have become less. None in profiles that don't know them.
pub(super) fn collections_of(
    texts: &Texts<'_>,
    requests: &Requests,
    wall: Column,
) -> (Vec<Collections>, i64) {
    let keys = judged_keys(texts.profile);
    let mut sums: FxHashMap<Option<&str>, [i64; 2]> = FxHashMap::default();
    for row in texts.profile.weights.iter() {
        if !row.key.state.is_gc() {
            continue;
        }
        let class = match texts.class_of(row.key.labels, requests, &keys) {
            Some(LatencyClass::Typical) => 0,
            Some(LatencyClass::Tail) => 1,
            _ => continue,
        };
        let cause = texts.label(row.key.labels, GC_CAUSE);
        let sum = &mut sums.entry(cause).or_default()[class];
        *sum = sum.saturating_add(row.value(wall));
    }
    let counts = classes(requests).map(|it| signed(it.count.max(1)));
    let means = sums.into_iter().map(|(cause, sums)| {
        let means = Means {
            typical: sums[0] / counts[0],
            tail: sums[1] / counts[1],
        };
        (cause, means)
    });
    let grown: Vec<_> = means.filter(|it| it.1.excess() > 0).collect();
    let excesses = grown.iter().map(|it| it.1.excess());
    let longer = excesses.fold(0, i64::saturating_add);
    let causes = grown.into_iter().filter_map(|(cause, means)| {
        let cause = cause?.into();
        Some(Collections { cause, means })
    });
    let mut causes: Vec<_> = causes.collect();
    causes.order_by(|a, b| {
        let rank = |it: &Collections| -it.means.excess();
        rank(a).cmp(&rank(b)).then_with(|| a.cause.cmp(&b.cause))
    });
    causes.truncate(SITES);
    (causes, longer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Why;
    use rperf_model::label_keys::LATENCY;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::test_support::node;
    use rperf_model::{Profile, RequestValues, State, WeightKey};

    /// A profile of orders whose tail collects 100 ns longer, with samples of these classes, states and causes.
    fn profile(samples: &[(&str, State, Option<&str>, i64)]) -> Profile {
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
        for &(class, state, cause, wall) in samples {
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
        test.profile
    }

    /// The causes with the time of a slow request and the share.
    fn told(samples: &[(&str, State, Option<&str>, i64)]) -> Vec<(String, i64, f64)> {
        let profile = profile(samples);
        let why = Why::of(&profile, &profile.requests[0]);
        let told = why.collections.iter();
        let told = told.map(|it| {
            let share = why.share_of_collections(it);
            (it.cause.clone(), it.means.tail, share)
        });
        told.collect()
    }

    #[test]
    fn causes_are_told_by_the_time_by_which_they_grew() {
        let told = told(&[
            ("typical", State::GcMarking, Some("minor newobj"), 20),
            ("tail", State::GcMarking, Some("minor newobj"), 20),
            ("tail", State::GcMarking, Some("major nofree"), 90),
            ("tail", State::GcSweeping, Some("major nofree"), 50),
            ("tail", State::GcSweeping, Some("minor malloc"), 30),
            ("tail", State::GcSweeping, None, 30),
            ("slow", State::GcMarking, Some("major force"), 1_000),
            ("tail", State::Running, Some("minor newobj"), 1_000),
        ]);
        assert_eq!(
            told,
            [
                ("major nofree".into(), 70, 70.0),
                ("minor malloc".into(), 15, 15.0)
            ]
        );
    }

    #[test]
    fn shares_are_of_all_that_grew_where_another_cause_became_less() {
        // The tail collects 100 ns longer: 160 ns more for three causes, and 60 ns less for the fourth.
        let told = told(&[
            ("typical", State::GcMarking, Some("minor newobj"), 120),
            ("tail", State::GcMarking, Some("major oldgen"), 240),
            ("tail", State::GcMarking, Some("major nofree"), 64),
            ("tail", State::GcMarking, Some("minor malloc"), 16),
        ]);
        let shares: Vec<_> = told.iter().map(|it| it.2).collect();
        assert_eq!(shares, [75.0, 20.0, 5.0]);
    }
}

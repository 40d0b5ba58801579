//! Why collections ran, and what those of each cause took. All but the lines is from exact sums. Asked by
//! `rperf report --gc`, the page of `rperf stat` and for JSON; any thread.

use crate::stack::groups::{Function, GroupId};
use crate::stack::places::Places;
use rperf_model::Order;
use rperf_model::label_keys::GC_CAUSE;
use rperf_model::{CollectionSums, GcCause, OwnColumn, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcTimes {
    /// All collections together.
    pub total: CollectionSums,
    /// By cause, those with the most time first.
    pub causes: Vec<CauseTimes>,
}

/// The collections of a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CauseTimes {
    /// The cause.
    pub cause: GcCause,
    /// What they took.
    pub sums: CollectionSums,
    /// If somebody has asked for them: the application's function and line that most of their samples lead
    /// to. Other collections come at whatever line allocates next.
    pub app: Option<(Function, u32)>,
}

impl GcTimes {
    /// The collections of a profile; `None` if it has none.
    pub fn of(profile: &Profile) -> Option<Self> {
        if profile.collections.is_empty() {
            return None;
        }
        let mut total = CollectionSums::default();
        for (_, sums) in profile.collections.iter() {
            total.add(sums);
        }
        let is_asked_for = |(cause, _): (GcCause, _)| cause.is_asked_for();
        let lines = match profile.collections.iter().any(is_asked_for) {
            true => lines(profile),
            false => FxHashMap::default(),
        };
        let of = |(cause, sums): (GcCause, &CollectionSums)| CauseTimes {
            cause,
            sums: sums.clone(),
            app: lines.get(&cause).cloned(),
        };
        let mut causes: Vec<_> = profile.collections.iter().map(of).collect();
        causes.order_by_key(|it| Reverse(it.sums.wall_ns));
        Some(Self { total, causes })
    }
}

/// The line that most samples of each cause lead to that is asked for.
fn lines(profile: &Profile) -> FxHashMap<GcCause, (Function, u32)> {
    let places = Places::of(profile);
    let times = [OwnColumn::Wall, OwnColumn::Cpu];
    let Some(column) = times.iter().find_map(|it| profile.schema.find_own(*it)) else {
        return FxHashMap::default();
    };
    let mut weights: FxHashMap<GcCause, FxHashMap<(GroupId, u32), i64>> = FxHashMap::default();
    for row in profile.weights.iter() {
        let labels = profile.label_sets.get(row.key.labels).iter();
        let cause = labels
            .filter(|&&(key, _)| profile.strings.get(key) == GC_CAUSE)
            .find_map(|&(_, value)| GcCause::from_name(profile.strings.get(value)));
        let Some(cause) = cause.filter(|it| it.is_asked_for()) else {
            continue;
        };
        if let Some(place) = places.of_node(row.key.node).1
            && row.value(column) > 0
        {
            let weight = weights.entry(cause).or_default().entry(place).or_default();
            *weight = weight.saturating_add(row.value(column));
        }
    }
    let most = |of: &FxHashMap<(GroupId, u32), i64>| {
        let most = of
            .iter()
            .max_by_key(|(place, weight)| (**weight, Reverse(**place)));
        most.map(|(&(group, line), _)| (places.function(group), line))
    };
    weights
        .iter()
        .filter_map(|(cause, of)| Some((*cause, most(of)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::State;
    use rperf_model::test_profile::TestProfile;

    fn took(count: u64, pauses: &[u64]) -> CollectionSums {
        let mut sums = CollectionSums {
            count,
            ..CollectionSums::default()
        };
        for &pause in pauses {
            sums.wall_ns += pause;
            sums.pauses.add(pause);
        }
        sums
    }

    #[test]
    fn causes_come_by_their_time_and_only_who_asks_has_a_line() {
        let mut test = TestProfile::wall()
            .with(&["main", "sweep_up"], 1, State::GcMarking, 10)
            .with(&["main", "other"], 1, State::GcMarking, 90);
        assert_eq!(GcTimes::of(&test.profile), None);
        let profile = &mut test.profile;
        let key = profile.strings.intern(GC_CAUSE);
        let mut set = |cause: GcCause| {
            let value = profile.strings.intern(cause.name());
            profile.label_sets.intern(vec![(key, value)])
        };
        let sets = [set(GcCause::MajorStart), set(GcCause::MinorNewobj)];
        let rows = profile.weights.iter().zip(sets).map(|(row, labels)| {
            let key = rperf_model::WeightKey { labels, ..row.key };
            (key, row.values.to_vec())
        });
        let rows: Vec<_> = rows.collect();
        profile.weights = rperf_model::Weights::new(profile.schema.len());
        for (key, values) in rows {
            profile.weights.push(key, &values);
        }
        profile
            .collections
            .add(GcCause::MajorStart, &took(1, &[10]));
        profile
            .collections
            .add(GcCause::MinorNewobj, &took(3, &[50, 40]));
        let times = GcTimes::of(profile).expect("there are some");
        assert_eq!((times.total.count, times.total.wall_ns), (4, 100));
        assert_eq!(times.total.pauses.count(), 3);
        let found = times.causes.iter().map(|it| {
            let line = it
                .app
                .as_ref()
                .map(|(function, line)| (&*function.name, *line));
            (it.cause, line)
        });
        let found: Vec<_> = found.collect();
        assert_eq!(found[0], (GcCause::MinorNewobj, None));
        let (cause, line) = found[1];
        assert_eq!(
            (cause, line.map(|it| it.0)),
            (GcCause::MajorStart, Some("sweep_up"))
        );
    }
}

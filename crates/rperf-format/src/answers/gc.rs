//! Why collections ran, and what they took, as plain data. Called by the JSON format and by the Ruby API;
//! any thread.

use super::ops::place;
use super::{Data, FilteredProfile};
use rperf_model::CollectionSums;
use rperf_report::GcTimes;

/// The collections by cause. Nothing if there are none.
pub fn collections(filtered: FilteredProfile<'_>) -> Data {
    let Some(times) = GcTimes::of(filtered.profile) else {
        return Data::Null;
    };
    let causes = times.causes.iter().map(|it| {
        let mut fields = vec![("cause", it.cause.name().into())];
        fields.extend(place(&it.app));
        fields.extend(sums(&it.sums));
        Data::Fields(fields)
    });
    Data::fields([
        ("total", Data::Fields(sums(&times.total))),
        ("causes", Data::list(causes)),
    ])
}

fn sums(sums: &CollectionSums) -> Vec<(&'static str, Data)> {
    let quantile = |percent| Data::from(sums.pauses.quantile(percent));
    vec![
        ("collections", sums.count.into()),
        ("wall_ns", sums.wall_ns.into()),
        ("marking_ns", sums.marking_ns.into()),
        ("sweeping_ns", sums.sweeping_ns().into()),
        ("cpu_ns", sums.cpu_ns.into()),
        ("pauses", sums.pauses.count().into()),
        ("pause_p50_ns", quantile(50)),
        ("pause_p99_ns", quantile(99)),
        ("pause_max_ns", sums.pauses.max().into()),
    ]
}

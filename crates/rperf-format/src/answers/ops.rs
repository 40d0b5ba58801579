//! What ops took, as plain data. Called by the JSON format and by the Ruby API; any thread.

use super::{Data, FilteredProfile};
use rperf_model::{LatencyClass, OpSums};
use rperf_report::{Function, OpTimes, Sort};

/// The ops, and those that requests repeat: up to `limit` rows of each. Nothing if there are none.
pub fn ops(filtered: FilteredProfile<'_>, sort: Sort, limit: Option<usize>) -> Data {
    let Some(times) = OpTimes::of(filtered.profile, sort) else {
        return Data::Null;
    };
    let limit = limit.unwrap_or(usize::MAX);
    let ops = times.ops.iter().take(limit).map(|it| {
        let mut fields = vec![("name", (&*it.name).into())];
        fields.extend(place(&it.app));
        fields.extend(sums(&it.sums));
        Data::Fields(fields)
    });
    let repeats = times.repeats.iter().take(limit).map(|it| {
        let mut fields = vec![
            ("name", (&*it.name).into()),
            ("key", (&*it.endpoint.0).into()),
            ("endpoint", (&*it.endpoint.1).into()),
            ("endpoint_requests", it.requests.into()),
            ("requests", it.sums.requests.into()),
            ("repeated", it.sums.repeated.into()),
        ];
        fields.extend(place(&it.app));
        fields.extend(sums(&it.sums));
        let class = |class: LatencyClass| {
            let of = it
                .sums
                .classes
                .get(class as usize)
                .copied()
                .unwrap_or_default();
            let fields = [("calls", of.calls.into()), ("wall_ns", of.wall_ns.into())];
            (class.name(), Data::fields(fields))
        };
        let classes = [LatencyClass::Typical, LatencyClass::Tail].map(class);
        fields.push(("classes", Data::fields(classes)));
        Data::Fields(fields)
    });
    Data::fields([
        ("total", Data::Fields(sums(&times.total))),
        ("row_count", times.ops.len().into()),
        ("ops", Data::list(ops)),
        ("repeats", Data::list(repeats)),
    ])
}

pub(super) fn place(app: &Option<(Function, u32)>) -> [(&'static str, Data); 3] {
    let (function, line) = app
        .as_ref()
        .map_or((None, 0), |(function, line)| (Some(function), *line));
    let text = |of: fn(&Function) -> &str| function.map_or(Data::Null, |it| of(it).into());
    [
        ("method", text(|it| &it.name)),
        ("path", text(|it| &it.path)),
        ("line", u64::from(line).into()),
    ]
}

fn sums(sums: &OpSums) -> Vec<(&'static str, Data)> {
    let quantile = |at| Data::from(sums.blocked.quantile(at));
    vec![
        ("calls", sums.calls.into()),
        ("wall_ns", sums.wall_ns.into()),
        ("running_ns", sums.running_ns.into()),
        ("gvl_wait_ns", sums.gvl_wait_ns.into()),
        ("blocked_ns", sums.blocked_ns.into()),
        ("gc_ns", sums.gc_ns.into()),
        ("suspended_ns", sums.suspended_ns.into()),
        ("blocked_p50_ns", quantile(500)),
        ("blocked_p99_ns", quantile(990)),
        ("blocked_max_ns", sums.blocked.max().into()),
        ("objects", sums.objects.into()),
        ("displaced_calls", sums.displaced.into()),
    ]
}

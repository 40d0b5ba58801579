//! What tests took, as plain data. Called by the JSON format and by the Ruby API; any thread.

use super::{Data, FilteredProfile};
use rperf_model::SuiteSums;
use rperf_report::{Sort, Tests};

/// The tests, their files, factories, gems and ops: up to `limit` rows of each. Nothing if there are none.
pub fn tests(filtered: FilteredProfile<'_>, sort: Sort, limit: Option<usize>) -> Data {
    let Some(tests) = Tests::of(filtered.profile, sort) else {
        return Data::Null;
    };
    let limit = limit.unwrap_or(usize::MAX);
    let examples = tests.examples.iter().take(limit).map(|it| {
        let own = [
            ("name", (&*it.name).into()),
            ("title", (&*it.sums.title).into()),
            ("file", (&*it.file).into()),
        ];
        with_sums(own, &it.sums)
    });
    let files = tests.files.iter().take(limit).map(|it| {
        let own = [
            ("name", (&*it.name).into()),
            ("hooks_ns", it.hooks_ns.into()),
        ];
        with_sums(own, &it.sums)
    });
    let factories = tests.factories.iter().take(limit).map(|it| {
        let own = [
            ("name", (&*it.name).into()),
            ("own_ns", it.sums.own_ns.into()),
            ("top_level", it.sums.top_level.into()),
        ];
        with_sums(own, &it.sums)
    });
    let gems = tests.gems.iter().take(limit).map(|it| {
        Data::fields([
            ("name", (&*it.name).into()),
            ("self", it.own.into()),
            ("total", it.total.into()),
        ])
    });
    let ops = tests.ops.iter().take(limit).map(|it| {
        Data::fields([
            ("name", (&*it.name).into()),
            ("self", it.own.into()),
            ("tests", it.tests.into()),
            ("most_in", (&*it.most_in).into()),
            ("most", it.most.into()),
        ])
    });
    Data::fields([
        ("total", with_sums([], &tests.total)),
        ("row_count", tests.examples.len().into()),
        ("without_row", tests.without_row.into()),
        ("examples", Data::list(examples)),
        ("files", Data::list(files)),
        ("factories", Data::list(factories)),
        ("gems", Data::list(gems)),
        ("ops", Data::list(ops)),
    ])
}

fn with_sums<const N: usize>(own: [(&'static str, Data); N], sums: &SuiteSums) -> Data {
    let values = [
        ("count", sums.count.into()),
        ("wall_ns", sums.wall_ns.into()),
        ("running_ns", sums.running_ns.into()),
        ("gvl_wait_ns", sums.gvl_wait_ns.into()),
        ("blocked_ns", sums.blocked_ns.into()),
        ("gc_ns", sums.gc_ns.into()),
        ("suspended_ns", sums.suspended_ns.into()),
        ("objects", sums.objects.into()),
    ];
    Data::Fields(own.into_iter().chain(values).collect())
}

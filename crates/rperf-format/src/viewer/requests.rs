//! The requests and jobs of a profile, by endpoint and class, in RPV1. Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use rperf_model::numbers;
use rperf_model::{Profile, RequestSums, RequestValues, Requests, Slowest};

/// A column, and its number of something.
type Column<T> = (&'static str, fn(&T) -> u64);

/// The columns of what requests took.
const VALUES: [Column<RequestValues>; 8] = [
    ("wall", |it| it.wall),
    ("running", |it| it.running),
    ("gvl_wait", |it| it.gvl_wait),
    ("blocked", |it| it.blocked),
    ("gc", |it| it.gc),
    ("suspended", |it| it.suspended),
    ("gvl_blame", |it| it.gvl_blame),
    ("objects", |it| it.objects),
];

/// The columns of how long the requests of an endpoint took.
const WALLS: [Column<Requests>; 5] = [
    ("count", Requests::count),
    ("p50", |it| it.walls.quantile(500)),
    ("p95", |it| it.walls.quantile(950)),
    ("p99", |it| it.walls.quantile(990)),
    ("max", |it| it.walls.max()),
];

const NS_PER_MS: u64 = 1_000_000;

/// Writes a profile's, if it has any; those of the page's first profile have the number 0.
pub(super) fn write(index: usize, profile: &Profile, tables: &mut Tables, columns: &mut Columns) {
    let all = &profile.requests;
    if all.is_empty() {
        return;
    }
    let name = |column: &str| format!("requests/{index}/{column}");
    let mut strings = |column: &str, text: fn(&Requests) -> &str| {
        let strings: Vec<u32> = all.iter().map(|it| tables.string(text(it))).collect();
        columns.unsigned(&name(column), strings.into_iter());
    };
    strings("key", |it| &it.key);
    strings("name", |it| &it.name);
    signed(columns, "requests", index, WALLS, || all.iter());
    let slowest = all.iter().map(|it| it.slowest.len() as u32);
    columns.unsigned(&name("slowest"), slowest);

    let classes = || all.iter().flat_map(|it| &it.classes);
    let counts: [Column<RequestSums>; 2] = [("count", |it| it.count), ("alone", |it| it.alone)];
    signed(columns, "request_classes", index, counts, classes);
    let sums = || classes().map(|it| &it.sums);
    signed(columns, "request_classes", index, VALUES, sums);

    let slowest = || all.iter().flat_map(|it| &it.slowest);
    let which: [Column<Slowest>; 3] = [
        ("ended_ms", |it| it.ended_ns / NS_PER_MS),
        ("session", |it| it.id.session.into()),
        ("number", |it| it.id.number.into()),
    ];
    signed(columns, "slowest", index, which, slowest);
    let values = || slowest().map(|it| &it.values);
    signed(columns, "slowest", index, VALUES, values);
}

/// Columns of one table: a number of each of `rows`.
fn signed<'a, T: 'a, I: Iterator<Item = &'a T>>(
    columns: &mut Columns,
    table: &str,
    index: usize,
    numbers: impl IntoIterator<Item = Column<T>>,
    rows: impl Fn() -> I,
) {
    for (column, number) in numbers {
        let numbers = rows().map(|it| numbers::signed(number(it)));
        columns.signed(&format!("{table}/{index}/{column}"), numbers);
    }
}

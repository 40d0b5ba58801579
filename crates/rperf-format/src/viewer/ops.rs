//! The ops of a profile's requests, by endpoint, in RPV1. Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use super::timed;
use rperf_model::numbers;
use rperf_model::{LatencyClass, OpCalls, OpSums, Profile};
use rperf_report::{EndpointOp, Function, ops_by_endpoint};

/// A column, and its number of an op.
type Column = (&'static str, fn(&OpSums) -> u64);

const COLUMNS: [Column; 9] = [
    ("calls", |it| it.calls),
    ("requests", |it| it.requests),
    ("p50", |it| it.blocked.quantile(500)),
    ("p99", |it| it.blocked.quantile(990)),
    ("max", |it| it.blocked.max()),
    ("typical_calls", |it| {
        of_class(it, LatencyClass::Typical).calls
    }),
    ("typical_wall", |it| {
        of_class(it, LatencyClass::Typical).wall_ns
    }),
    ("tail_calls", |it| of_class(it, LatencyClass::Tail).calls),
    ("tail_wall", |it| of_class(it, LatencyClass::Tail).wall_ns),
];

/// Writes a profile's, if it has any; those of the page's first profile have the number 0.
pub(super) fn write(index: usize, profile: &Profile, tables: &mut Tables, columns: &mut Columns) {
    let by_endpoint = ops_by_endpoint(profile);
    let all: Vec<&EndpointOp<'_>> = by_endpoint.iter().flatten().collect();
    if all.is_empty() {
        return;
    }
    let counts = by_endpoint.iter().map(|ops| ops.len() as u32);
    columns.unsigned(&format!("requests/{index}/ops"), counts);

    let name = |column: &str| format!("ops/{index}/{column}");
    let own = |op: &EndpointOp<'_>, text: fn(&Function) -> &str| {
        let app = op.app.as_ref();
        app.map_or_else(String::new, |(function, _)| text(function).into())
    };
    let mut strings = |column: &str, text: &dyn Fn(&EndpointOp<'_>) -> String| {
        let strings: Vec<u32> = all.iter().map(|it| tables.string(&text(it))).collect();
        columns.unsigned(&name(column), strings.into_iter());
    };
    strings("name", &|it| it.name.into());
    strings("method", &|it| own(it, |function| &function.name));
    strings("file", &|it| own(it, |function| &function.short_path));
    let lines = all.iter().map(|it| it.app.as_ref().map_or(0, |app| app.1));
    columns.unsigned(&name("line"), lines);

    let mut signed = |column: &str, number: &dyn Fn(&EndpointOp<'_>) -> i64| {
        columns.signed(&name(column), all.iter().map(|it| number(it)));
    };
    for (column, number) in COLUMNS {
        signed(column, &|it| numbers::signed(number(it.sums)));
    }
    signed("repeated", &|it| match it.is_repeated {
        true => numbers::signed(it.sums.repeated),
        false => 0,
    });
    let sums: Vec<&OpSums> = all.iter().map(|it| it.sums).collect();
    timed::write(columns, &format!("ops/{index}"), &sums);
}

fn of_class(sums: &OpSums, class: LatencyClass) -> OpCalls {
    let of = sums.classes.get(class as usize).copied();
    of.unwrap_or_default()
}

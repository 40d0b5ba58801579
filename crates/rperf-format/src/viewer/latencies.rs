//! How long the calls of methods took, in RPV1. Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use rperf_model::numbers::signed;
use rperf_model::{Histogram, Latencies, Profile};
use rperf_report::CodePaths;
use std::borrow::Cow;

/// Writes a profile's, if it has any; those of the page's first profile have the number 0.
pub(super) fn write(index: usize, profile: &Profile, tables: &mut Tables, columns: &mut Columns) {
    let methods = profile.latencies.iter();
    let methods: Vec<&Latencies> = methods.filter(|it| it.durations.count() > 0).collect();
    if methods.is_empty() {
        return;
    }
    let name = |column: &str| format!("latencies/{index}/{column}");
    let paths = CodePaths::of(profile);
    let mut strings = |texts: &mut dyn Iterator<Item = Cow<'_, str>>| -> Vec<u32> {
        texts.map(|text| tables.string(&text)).collect()
    };
    let names = strings(&mut methods.iter().map(|it| it.name.as_str().into()));
    let files = strings(&mut methods.iter().map(|it| paths.short(&it.path)));
    columns.unsigned(&name("name"), names.into_iter());
    columns.unsigned(&name("file"), files.into_iter());
    let mut numbers = |column: &str, number: fn(&Histogram) -> u64| {
        let numbers = methods.iter().map(|it| number(&it.durations));
        columns.signed(&name(column), numbers.map(signed));
    };
    numbers("calls", Histogram::count);
    numbers("p50", |it| it.quantile(50));
    numbers("p99", |it| it.quantile(99));
    numbers("max", Histogram::max);
}

//! How long the calls of methods took, in RPV1. Called by `viewer`; any thread.

use super::columns::Columns;
use super::tables::Tables;
use rperf_model::{Histogram, Latencies, Profile};

/// Writes a profile's, if it has any; those of the page's first profile have the number 0.
pub(super) fn write(index: usize, profile: &Profile, tables: &mut Tables, columns: &mut Columns) {
    let methods = profile.latencies.iter();
    let methods: Vec<&Latencies> = methods.filter(|it| it.durations.count() > 0).collect();
    if methods.is_empty() {
        return;
    }
    let name = |column: &str| format!("latencies/{index}/{column}");
    let mut strings = |text: fn(&Latencies) -> &str| -> Vec<u32> {
        let texts = methods.iter().map(|it| text(it));
        texts.map(|text| tables.string(text)).collect()
    };
    let (names, files) = (strings(|it| &it.name), strings(|it| &it.path));
    columns.unsigned(&name("name"), names.into_iter());
    columns.unsigned(&name("file"), files.into_iter());
    let mut numbers = |column: &str, number: fn(&Histogram) -> u64| {
        let numbers = methods.iter().map(|it| number(&it.durations));
        let signed = numbers.map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        columns.signed(&name(column), signed);
    };
    numbers("calls", Histogram::count);
    numbers("p50", |it| it.quantile(50));
    numbers("p99", |it| it.quantile(99));
    numbers("max", Histogram::max);
}

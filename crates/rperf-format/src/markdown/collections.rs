//! Why collections ran, in Markdown. Any thread.

use super::part::Part;
use super::text::{Table, app};
use crate::gc_table::{HEADINGS, cells, gc_head};
use rperf_report::GcTimes;

/// The collections; nothing without any.
pub(super) fn collections(part: &Part<'_>) -> String {
    let Some(times) = GcTimes::of(part.report.profile) else {
        return String::new();
    };
    let headings: Vec<_> = HEADINGS.into_iter().chain(["cause", "at"]).collect();
    let mut table = Table::new(&headings, HEADINGS.len());
    for cause in part.shown(&times.causes) {
        let mut row = cells(&times, cause);
        row.push(cause.cause.name().into());
        row.push(match &cause.app {
            Some(_) => app(&cause.app),
            None => cause.cause.description().into(),
        });
        table.row(row);
    }
    let text = format!(
        "{}. Times are exact sums of all collections. *p50*, *p99*, *max*: how long the program stands still at \
         a time.",
        gc_head(&times)
    );
    let all = times.causes.len();
    part.section("Collections of garbage", &text, &table.text(), all)
}

//! Reports that aren't about stacks: those of the loading of files, of tests, ops and collections. Called by
//! `rperf report`; any thread.

use super::part::Part;
use super::{Report, boot, collections, ops, suite, title};
use crate::Parts;
use crate::answers::FilteredProfile;
use rperf_report::Sort;

/// What writes a part.
type Write = fn(&Part<'_>) -> String;

/// The report on these parts. `limit`: rows in each table; `None`: all.
pub fn markdown_of(
    filtered: FilteredProfile<'_>,
    parts: Parts,
    sort: Sort,
    limit: Option<usize>,
) -> String {
    let report = Report::new(filtered);
    let part = Part {
        report: &report,
        sort,
        limit,
    };
    let of: [(bool, Write); 4] = [
        (parts.boot, boot::boot),
        (parts.tests, suite::tests),
        (parts.ops, ops::ops),
        (parts.gc, collections::collections),
    ];
    let head = format!("{}\n{}", title(report.profile), report.facts());
    let parts = of.iter().filter(|it| it.0).map(|(_, write)| write(&part));
    let texts = [head].into_iter().chain(parts);
    let texts: Vec<_> = texts.filter(|it| !it.is_empty()).collect();
    texts.join("\n")
}

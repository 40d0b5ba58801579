//! Why collections ran, as text.

use super::Page;
use rperf_format::{gc_head, gc_table};
use rperf_report::GcTimes;

/// What the figures are.
const EXACT: &str = "Times are exact sums of all collections; lines are told by samples. p50, p99, max: how \
                     long the program stands still at a time.\n";

/// The collections.
pub fn gc(page: &Page<'_>) -> String {
    let mut text = page.head();
    if let Some(mut times) = GcTimes::of(page.profile) {
        let head = format!("{}\n{EXACT}", gc_head(&times));
        text += &page.screen.wrapped(&head);
        let all = times.causes.len();
        times.causes.truncate(page.limit.unwrap_or(all));
        let table = page.screen.table(&gc_table(&times));
        text += &format!("\n{table}{}", page.more(all));
    }
    text
}

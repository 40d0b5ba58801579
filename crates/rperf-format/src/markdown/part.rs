//! What parts of a report are written with: headings, tables, and how many rows aren't shown. Any thread.

use super::Report;
use super::text::left_out;
use rperf_report::Sort;

/// What all parts are written with.
pub(super) struct Part<'a> {
    pub(super) report: &'a Report<'a>,
    pub(super) sort: Sort,
    pub(super) limit: Option<usize>,
}

impl Part<'_> {
    /// The rows that are shown.
    pub(super) fn shown<'b, T>(&self, rows: &'b [T]) -> impl Iterator<Item = &'b T> {
        rows.iter().take(self.limit.unwrap_or(usize::MAX))
    }

    /// A heading, a text (which may be empty, and whose lines are paragraphs) and a table, of whose rows there
    /// are so many.
    pub(super) fn section(&self, title: &str, text: &str, table: &str, all: usize) -> String {
        let text = match text.trim_end() {
            "" => String::new(),
            text => format!("{}\n\n", text.replace('\n', "\n\n")),
        };
        let more = left_out(all.saturating_sub(self.limit.unwrap_or(all)));
        format!("### {title}\n\n{text}{table}{more}")
    }
}

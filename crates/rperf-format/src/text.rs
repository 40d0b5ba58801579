//! The report for people: what was measured, then the functions with the most
//! time of their own and the most time in all, and if asked for the hottest lines.
//! Written only; any thread.

use crate::FormatError;
use crate::numbers::{grouped, milliseconds, percent};
use crate::one_line::{function_name, one_line};
use rperf_model::{Counters, FunctionTotals, Lines, Profile, Totals};
use std::io::Write;

/// Rows in each table.
const ROWS: usize = 50;

/// What a text report shows beside the tables of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextOptions {
    /// The table of the hottest lines.
    pub lines: bool,
}

/// Writes the report on `profile`.
pub(crate) fn write(
    profile: &Profile,
    options: TextOptions,
    output: &mut dyn Write,
) -> Result<(), FormatError> {
    let meta = &profile.meta;
    let totals = Totals::of(profile);
    let (total, mode) = (milliseconds(totals.weight_ns), meta.mode.name());
    writeln!(output, "Total: {total}ms ({mode})")?;
    let (samples, frequency) = (grouped(totals.count), meta.frequency);
    writeln!(output, "Samples: {samples}, Frequency: {frequency}Hz")?;
    if let Some(losses) = losses(&meta.counters) {
        writeln!(output, "{losses}")?;
    }
    let all_ns = totals.weight_ns;
    write_table(output, "Flat", &totals.flat(), all_ns, |row| row.self_ns)?;
    write_table(output, "Cumulative", &totals.cumulative(), all_ns, |row| {
        row.total_ns
    })?;
    if options.lines {
        write_lines(output, &Lines::of(profile), all_ns)?;
    }
    Ok(())
}

fn write_table(
    output: &mut dyn Write,
    title: &str,
    functions: &[&FunctionTotals],
    all_ns: u64,
    ns: impl Fn(&FunctionTotals) -> u64,
) -> Result<(), FormatError> {
    writeln!(output, "\n{title}:")?;
    // The rows are sorted, so the first one is the widest.
    let width = width(functions.first().map_or(0, |row| ns(row)));
    for row in functions.iter().take(ROWS) {
        let time = time(ns(row), all_ns, width);
        let name = function_name(&row.name);
        write!(output, "  {time}  {name}")?;
        match one_line(&row.path) {
            path if path.is_empty() => writeln!(output)?,
            path => writeln!(output, " ({path})")?,
        }
    }
    write_more(output, functions.len())
}

fn write_lines(output: &mut dyn Write, table: &Lines, all_ns: u64) -> Result<(), FormatError> {
    let Lines { lines, unknown_ns } = table;
    let Some(first) = lines.first() else {
        writeln!(output, "\nLines: none were recorded")?;
        return Ok(());
    };
    writeln!(output, "\nLines:")?;
    let shown = lines.iter().take(ROWS);
    let total_ns = shown.map(|row| row.total_ns).max().unwrap_or(0);
    let (self_width, total_width) = (width(first.self_ns.max(*unknown_ns)), width(total_ns));
    let cell = |width| width + " ms 100.0%".len();
    let (self_cell, total_cell) = (cell(self_width), cell(total_width));
    writeln!(output, "  {:>self_cell$}  {:>total_cell$}", "self", "total")?;
    for row in lines.iter().take(ROWS) {
        let self_time = time(row.self_ns, all_ns, self_width);
        let total_time = time(row.total_ns, all_ns, total_width);
        let (path, line) = (one_line(&row.path), row.line);
        let method = function_name(&row.method);
        writeln!(
            output,
            "  {self_time}  {total_time}  {path}:{line} ({method})"
        )?;
    }
    write_more(output, lines.len())?;
    if *unknown_ns > 0 {
        let time = time(*unknown_ns, all_ns, self_width);
        writeln!(output, "  {time}  {:total_cell$}  (line not known)", "")?;
    }
    Ok(())
}

/// The width of a column of times of which `largest` is the largest.
fn width(largest: u64) -> usize {
    milliseconds(largest).len().max(8)
}

fn time(ns: u64, all_ns: u64, width: usize) -> String {
    let (ms, percent) = (milliseconds(ns), percent(ns, all_ns));
    format!("{ms:>width$} ms {percent:>5.1}%")
}

fn write_more(output: &mut dyn Write, rows: usize) -> Result<(), FormatError> {
    let more = rows.saturating_sub(ROWS);
    if more > 0 {
        writeln!(output, "  ({} more)", grouped(more as u64))?;
    }
    Ok(())
}

/// What the profile lacks, if it lacks anything.
fn losses(counters: &Counters) -> Option<String> {
    let mut parts = Vec::new();
    if counters.dropped_samples > 0 || counters.dropped_ns > 0 {
        let (samples, ms) = (counters.dropped_samples, milliseconds(counters.dropped_ns));
        parts.push(format!("Dropped samples: {} ({ms}ms)", grouped(samples)));
    }
    if counters.truncated_samples > 0 {
        let stacks = grouped(counters.truncated_samples);
        parts.push(format!("Truncated stacks: {stacks}"));
    }
    if counters.unlabelled_samples > 0 {
        let samples = grouped(counters.unlabelled_samples);
        parts.push(format!("Samples without their labels: {samples}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_only_if_there_are_any() {
        let mut counters = Counters::default();
        assert_eq!(losses(&counters), None);
        counters.truncated_samples = 5;
        assert_eq!(losses(&counters).as_deref(), Some("Truncated stacks: 5"));
        counters.dropped_samples = 1_000;
        counters.dropped_ns = 2_000_000;
        assert_eq!(
            losses(&counters).as_deref(),
            Some("Dropped samples: 1,000 (2.0ms), Truncated stacks: 5")
        );
        counters = Counters::default();
        counters.unlabelled_samples = 7;
        let expected = Some("Samples without their labels: 7");
        assert_eq!(losses(&counters).as_deref(), expected);
    }
}

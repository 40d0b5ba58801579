//! The report for people: what was measured, then the functions with the largest
//! values of their own and the largest in all, and if asked for the hottest lines.
//! It is about the profile's default column. Times in nanoseconds are shown in
//! milliseconds, counts as mere numbers, and other values with their unit:
//! `1,234 bytes`.
//! Written only; any thread.

use crate::FormatError;
use crate::numbers::{Unit, grouped, milliseconds, percent};
use crate::one_line::{function_name, one_line};
use rperf_model::{Counters, FunctionTotals, Lines, Profile, Totals};
use std::borrow::Cow;
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
    let column = profile.schema.default_column();
    let totals = Totals::of(profile, column);
    let amounts = Amounts::new(profile, totals.value);
    let name = one_line(&profile.schema.default_type().name);
    writeln!(output, "Total: {} ({name})", amounts.total())?;
    if let Some(sampling) = sampling(profile) {
        writeln!(output, "{sampling}")?;
    }
    if let Some(losses) = losses(&profile.meta.counters) {
        writeln!(output, "{losses}")?;
    }
    let (flat, cumulative) = (totals.flat(), totals.cumulative());
    write_table(output, "Flat", &flat, &amounts, |row| row.self_value)?;
    write_table(output, "Cumulative", &cumulative, &amounts, |row| {
        row.total_value
    })?;
    if options.lines {
        write_lines(output, &Lines::of(profile, column), &amounts)?;
    }
    Ok(())
}

/// How many samples there are, and how often they were taken, as far as it is known.
fn sampling(profile: &Profile) -> Option<String> {
    let samples = profile.sample_count();
    let samples = samples.map(|count| format!("Samples: {}", grouped(count)));
    let frequency = match profile.meta.frequency {
        0 => None,
        frequency => Some(format!("Frequency: {frequency}Hz")),
    };
    let parts: Vec<_> = samples.into_iter().chain(frequency).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn write_table(
    output: &mut dyn Write,
    title: &str,
    functions: &[&FunctionTotals],
    amounts: &Amounts<'_>,
    value: impl Fn(&FunctionTotals) -> i64,
) -> Result<(), FormatError> {
    writeln!(output, "\n{title}:")?;
    let shown = || functions.iter().take(ROWS);
    let width = amounts.width(shown().map(|row| value(row)));
    for row in shown() {
        let amount = amounts.cell(value(row), width);
        let name = function_name(&row.name);
        write!(output, "  {amount}  {name}")?;
        match one_line(&row.path) {
            path if path.is_empty() => writeln!(output)?,
            path => writeln!(output, " ({path})")?,
        }
    }
    write_more(output, functions.len())
}

fn write_lines(
    output: &mut dyn Write,
    table: &Lines,
    amounts: &Amounts<'_>,
) -> Result<(), FormatError> {
    let Lines { lines, unknown } = table;
    if lines.is_empty() {
        writeln!(output, "\nLines: none were recorded")?;
        return Ok(());
    }
    writeln!(output, "\nLines:")?;
    let shown = || lines.iter().take(ROWS);
    let self_values = shown().map(|row| row.self_value).chain([*unknown]);
    let self_width = amounts.width(self_values);
    let total_width = amounts.width(shown().map(|row| row.total_value));
    let (self_cell, total_cell) = (
        amounts.cell(0, self_width).chars().count(),
        amounts.cell(0, total_width).chars().count(),
    );
    writeln!(output, "  {:>self_cell$}  {:>total_cell$}", "self", "total")?;
    for row in shown() {
        let own = amounts.cell(row.self_value, self_width);
        let total = amounts.cell(row.total_value, total_width);
        let (path, line) = (one_line(&row.path), row.line);
        let method = function_name(&row.method);
        writeln!(output, "  {own}  {total}  {path}:{line} ({method})")?;
    }
    write_more(output, lines.len())?;
    if *unknown != 0 {
        let own = amounts.cell(*unknown, self_width);
        writeln!(output, "  {own}  {:total_cell$}  (line not known)", "")?;
    }
    Ok(())
}

/// How values of the profile's default column are shown.
struct Amounts<'a> {
    unit: Unit<'a>,
    /// The unit's name, fit for a line.
    name: Cow<'a, str>,
    /// What shares are of.
    whole: i64,
}

impl<'a> Amounts<'a> {
    fn new(profile: &'a Profile, whole: i64) -> Self {
        let unit = Unit::new(&profile.schema.default_type().unit);
        let name = one_line(unit.name());
        Self { unit, name, whole }
    }

    /// `12.3ms`, `12 bytes`, `12`.
    fn total(&self) -> String {
        let number = self.unit.number(self.whole);
        match &*self.name {
            "" => number,
            "ms" => format!("{number}ms"),
            name => format!("{number} {name}"),
        }
    }

    /// The width of a column of numbers.
    fn width(&self, values: impl Iterator<Item = i64>) -> usize {
        let widths = values.map(|value| self.unit.number(value).len());
        widths.max().unwrap_or(0).max(8)
    }

    /// A number of this width, with its unit and share.
    fn cell(&self, value: i64, width: usize) -> String {
        let number = self.unit.number(value);
        // The number has the sign.
        let share = percent(value.unsigned_abs(), self.whole.unsigned_abs());
        match &*self.name {
            "" => format!("{number:>width$} {share:>5.1}%"),
            name => format!("{number:>width$} {name} {share:>5.1}%"),
        }
    }
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

//! The report for people: what was measured, then the functions with the most
//! time of their own and the most time in all. Written only; any thread.

use crate::FormatError;
use crate::numbers::{grouped, milliseconds, percent};
use crate::one_line::{function_name, one_line};
use rperf_model::{Counters, FunctionTotals, Profile, Totals};
use std::io::Write;

/// Rows in each table.
const ROWS: usize = 50;

/// Writes the report on `profile`.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
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
    })
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
    let first = functions.first().map_or(0, |row| ns(row));
    let width = milliseconds(first).len().max(8);
    for row in functions.iter().take(ROWS) {
        let ms = milliseconds(ns(row));
        let percent = percent(ns(row), all_ns);
        let name = function_name(&row.name);
        write!(output, "  {ms:>width$} ms {percent:>5.1}%  {name}")?;
        match one_line(&row.path) {
            path if path.is_empty() => writeln!(output)?,
            path => writeln!(output, " ({path})")?,
        }
    }
    let more = functions.len().saturating_sub(ROWS);
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
    }
}

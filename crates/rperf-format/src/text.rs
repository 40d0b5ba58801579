//! The text report: what was measured, then the functions with the largest values of their own, the
//! functions with the largest totals, and on request the hottest lines. It is about the profile's
//! default column. Called by `format::write` and by the page of `rperf stat --report`; any thread.

use crate::FormatError;
use rperf_model::Profile;
use rperf_report::numbers::{grouped, percent};
use rperf_report::one_line::{function_name, one_line};
use rperf_report::{
    By, Calls, Lines, Scale, Sort, Top, TopRow, idle_line, losses_line, nanoseconds_per,
    tracing_lines, without_idle,
};
use std::borrow::Cow;
use std::io::Write;

/// Rows in each table.
const ROWS: usize = 50;

/// The parts of a text report beside the tables of functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextOptions {
    /// The table of the hottest lines.
    pub lines: bool,
    /// What there was before filters. `None`: there were none, and the time of idle threads has yet
    /// to be left out.
    pub whole: Option<Whole>,
}

/// What a profile was before filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// Its sum, of which all shares are.
    pub value: i64,
    /// The time of idle threads that was left out before.
    pub idle: i64,
}

/// Writes the report on `profile`.
pub(crate) fn write(
    profile: &Profile,
    options: TextOptions,
    output: &mut dyn Write,
) -> Result<(), FormatError> {
    let (profile, idle) = match options.whole {
        Some(whole) => (Cow::Borrowed(profile), whole.idle),
        None => without_idle(profile),
    };
    let profile = &*profile;
    let column = profile.schema.default_column();
    let top = Top::of(profile, column, &By::Function);
    let whole = options.whole.map_or(top.total, |whole| whole.value);
    let amounts = Amounts::new(profile, whole);
    let name = one_line(&profile.schema.default_type().name);
    write!(output, "Total: {} ({name})", amounts.text(amounts.whole))?;
    if top.total != amounts.whole {
        let (left, share) = (amounts.text(top.total), amounts.share(top.total));
        write!(output, ", of which {left} ({share:.1}%) are left")?;
    }
    writeln!(output)?;
    if let Some(idle) = idle_line(profile, idle) {
        writeln!(output, "{idle}")?;
    }
    if let Some(sampling) = sampling(profile) {
        writeln!(output, "{sampling}")?;
    }
    if let Some(losses) = losses_line(&profile.meta.counters) {
        writeln!(output, "{losses}")?;
    }
    for line in tracing_lines(profile) {
        writeln!(output, "Traced: {}", one_line(line))?;
    }
    let calls = Calls::of(profile, &By::Function);
    for (title, sort) in [("Flat", Sort::Flat), ("Cumulative", Sort::Cumulative)] {
        write_table(
            output,
            title,
            &top.sorted(sort),
            &amounts,
            sort,
            calls.as_ref(),
        )?;
    }
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
    rows: &[&TopRow],
    amounts: &Amounts,
    sort: Sort,
    calls: Option<&Calls>,
) -> Result<(), FormatError> {
    writeln!(output, "\n{title}:")?;
    let shown = || rows.iter().take(ROWS);
    let width = amounts.width(shown().map(|row| row.value(sort)));
    if calls.is_some() {
        let blank = amounts.cell(0, width).chars().count();
        writeln!(output, "  {:blank$}  {:>12}  {:>12}", "", "calls", "blocks")?;
    }
    for row in shown() {
        let amount = amounts.cell(row.value(sort), width);
        let name = function_name(&row.function.name);
        write!(output, "  {amount}")?;
        if let Some(calls) = calls {
            let methods = calls.calls_text(&row.function);
            let blocks = calls.block_calls_text(&row.function);
            write!(output, "  {methods:>12}  {blocks:>12}")?;
        }
        write!(output, "  {name}")?;
        match one_line(&row.function.short_path) {
            path if path.is_empty() => writeln!(output)?,
            path => writeln!(output, " ({path})")?,
        }
    }
    write_more(output, rows.len())
}

fn write_lines(
    output: &mut dyn Write,
    table: &Lines,
    amounts: &Amounts,
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
        let (path, line) = (one_line(&row.short_path), row.line);
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
struct Amounts {
    scale: Scale,
    is_time: bool,
    /// The sum of which shares are shown.
    whole: i64,
}

impl Amounts {
    fn new(profile: &Profile, whole: i64) -> Self {
        let value_type = profile.schema.default_type();
        Self {
            scale: Scale::new(value_type, whole),
            is_time: nanoseconds_per(&value_type.unit).is_some(),
            whole,
        }
    }

    /// `12.3ms`, `12 KB`, `12`.
    fn text(&self, value: i64) -> String {
        match self.is_time {
            true => self.scale.number(value) + self.scale.unit(),
            false => self.scale.text(value),
        }
    }

    /// In percent, without a sign: the number has it.
    fn share(&self, value: i64) -> f64 {
        percent(value.unsigned_abs(), self.whole.unsigned_abs())
    }

    /// The width of a column of numbers.
    fn width(&self, values: impl Iterator<Item = i64>) -> usize {
        let widths = values.map(|value| self.scale.number(value).len());
        widths.max().unwrap_or(0).max(8)
    }

    /// A number of this width, with its unit and share.
    fn cell(&self, value: i64, width: usize) -> String {
        let (number, share) = (self.scale.number(value), self.share(value));
        match self.scale.unit() {
            "" => format!("{number:>width$} {share:>5.1}%"),
            unit => format!("{number:>width$} {unit} {share:>5.1}%"),
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

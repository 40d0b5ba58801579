//! The text report: what was measured, then the functions with the largest values of their own, the
//! functions with the largest totals, and on request the hottest lines. It is about the profile's
//! default column. Called by `format::write`, and by the command for terminals; any thread.

use crate::FormatError;
use crate::table::{Column, Row, Surface, Table, wrapped};
use rperf_model::Profile;
use rperf_report::numbers::{grouped, percent};
use rperf_report::one_line::{function_name, one_line};
use rperf_report::{
    By, Calls, Lines, Scale, Sort, Top, TopRow, idle_line, losses_line, nanoseconds_per,
    without_idle,
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
    Ok(output.write_all(report(profile, options, Surface::PLAIN).as_bytes())?)
}

/// The report on `profile` for a terminal: tables fit its width. `None`: nothing is cut.
pub fn for_terminal(profile: &Profile, options: TextOptions, width: Option<usize>) -> String {
    let surface = Surface {
        width,
        ..Surface::PLAIN
    };
    report(profile, options, surface)
}

fn report(profile: &Profile, options: TextOptions, surface: Surface<'_>) -> String {
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
    let mut text = format!("Total: {} ({name})", amounts.text(amounts.whole));
    if top.total != amounts.whole {
        let (left, share) = (amounts.text(top.total), amounts.share(top.total));
        text += &format!(", of which {left} ({share:.1}%) are left");
    }
    text.push('\n');
    let losses = losses_line(&profile.meta.counters);
    let head = idle_line(profile, idle).into_iter();
    for line in head.chain(sampling(profile)).chain(losses) {
        text += &line;
        text.push('\n');
    }
    for traced in profile.meta.tracing() {
        text += &format!("Traced: {}\n", one_line(&traced.to_string()));
    }
    if let Some(width) = surface.width {
        text = wrapped(&text, width, "  ");
    }
    let calls = Calls::of(profile, &By::Function);
    for (title, sort) in [("Flat", Sort::SelfValue), ("Cumulative", Sort::TotalValue)] {
        let rows = top.sorted(sort);
        text += &format!("\n{title}:\n");
        text += &methods(&rows, &amounts, sort, calls.as_ref()).render(surface);
        text += &more(rows.len());
    }
    if options.lines {
        text += &lines(&Lines::of(profile, column), &amounts, surface);
    }
    text
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

/// Moves a table to the right by the gap between its columns.
const INDENT: &str = "";

fn methods(rows: &[&TopRow], amounts: &Amounts, sort: Sort, calls: Option<&Calls>) -> Table {
    let shown = || rows.iter().take(ROWS);
    let width = amounts.width(shown().map(|row| row.value(sort)));
    let mut columns = vec![Column::new(INDENT), Column::new("")];
    if calls.is_some() {
        columns.push(Column::weighing(format!("{:>12}", "calls"), 2));
        columns.push(Column::weighing(format!("{:>12}", "blocks"), 1));
    }
    let mut table = Table::new(columns);
    for row in shown() {
        let mut cells = vec![INDENT.into(), amounts.cell(row.value(sort), width)];
        if let Some(calls) = calls {
            cells.push(calls.calls_text(&row.function));
            cells.push(calls.block_calls_text(&row.function));
        }
        table.push(Row::of(&row.function, cells, 0.0));
    }
    table
}

fn lines(found: &Lines, amounts: &Amounts, surface: Surface<'_>) -> String {
    let Lines { lines, unknown } = found;
    if lines.is_empty() {
        return "\nLines: none were recorded\n".into();
    }
    let shown = || lines.iter().take(ROWS);
    let self_values = shown().map(|row| row.self_value).chain([*unknown]);
    let self_width = amounts.width(self_values);
    let total_width = amounts.width(shown().map(|row| row.total_value));
    let columns = [
        Column::new(INDENT),
        Column::new("self"),
        Column::weighing("total", 1),
    ];
    let mut table = Table::new(columns);
    for row in shown() {
        let own = amounts.cell(row.self_value, self_width);
        let total = amounts.cell(row.total_value, total_width);
        table.push(Row {
            cells: vec![INDENT.into(), own, total],
            name: format!("{}:{}", one_line(&row.short_path), row.line),
            detail: function_name(&row.method).into_owned(),
            needs_detail: true,
            ..Row::default()
        });
    }
    if *unknown != 0 {
        let own = amounts.cell(*unknown, self_width);
        table.push(Row {
            cells: vec![INDENT.into(), own, String::new()],
            name: "(line not known)".into(),
            ..Row::default()
        });
    }
    format!("\nLines:\n{}{}", table.render(surface), more(lines.len()))
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

/// How many rows a table doesn't have.
fn more(rows: usize) -> String {
    match rows.saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("  ({} more)\n", grouped(more as u64)),
    }
}

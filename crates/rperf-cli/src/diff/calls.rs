//! `rperf diff --calls`: how often methods were called, before and after. Counts are exact, so no
//! difference is noise. Called by `diff`, on the main thread.

use super::call_limit::{CallLimit, shown_name};
use super::options::Options;
use super::percent::percent_text;
use super::reader::Reader;
use crate::left_out::{SHOWS_MORE, left_out};
use crate::report::screen::{Screen, Style};
use crate::report::write_text;
use crate::{EXCEEDED, Refusal};
use rperf_format::table::{Column, Row, Table};
use rperf_model::Profile;
use rperf_report::numbers::{grouped, plus};
use rperf_report::one_line::one_line;
use rperf_report::{CallChange, CallDiff};
use std::path::PathBuf;

/// Names of failures that are said.
const SAID: usize = 5;

/// Shows what has changed, and returns the exit status.
pub fn run(reader: &mut Reader<'_>) -> Result<i32, Refusal> {
    let options = reader.options;
    let ([base_file], [target_file]) = (&options.base[..], &options.target[..]) else {
        let message = "--calls compares two profiles: counts are exact, and need no further runs";
        return Err(Refusal::usage(message));
    };
    let profiles = [reader.profile(base_file)?, reader.profile(target_file)?];
    let diff = CallDiff::of(&profiles[0], &profiles[1]);
    let diff = diff.map_err(|error| {
        let hint = options.fail_on.iter().find_map(CallLimit::hint);
        let hint = hint.map(|it| format!("; {it}")).unwrap_or_default();
        Refusal::usage(format!("{error}{hint}"))
    })?;
    show(reader, [base_file, target_file], &profiles, &diff)
}

/// What the filters leave of two traces of which the same calls were counted, and the changes in
/// their calls. Calls of idle threads are calls, too.
pub fn exact(reader: &mut Reader<'_>, read: &[Profile; 2]) -> Option<([Profile; 2], CallDiff)> {
    if !read.iter().all(|it| it.schema.is_traced()) {
        return None;
    }
    let profiles = read.each_ref().map(|it| reader.with_idle(it.clone()));
    let diff = CallDiff::of(&profiles[0], &profiles[1]).ok()?;
    Some((profiles, diff))
}

/// Shows what has changed between these files, and returns the exit status.
pub fn show(
    reader: &mut Reader<'_>,
    files: [&PathBuf; 2],
    profiles: &[Profile; 2],
    diff: &CallDiff,
) -> Result<i32, Refusal> {
    let options = reader.options;
    reader.say_unmatched();
    if diff.total.base == 0 && diff.total.target == 0 && !options.fail_on.is_empty() {
        let message = "--fail-on can't tell: there is nothing to compare";
        return Err(Refusal::usage(message));
    }
    let [base, target] = profiles;
    let mut failures = Vec::new();
    for limit in &options.fail_on {
        failures.extend(limit.exceeded(diff, [base, target])?);
    }
    let screen = Screen::stdout(options.pager);
    let mut text = page(diff, options, files, &screen);
    let shown = target.schema.default_type();
    if options.is_plain && shown.unit != "count" {
        let name = one_line(&shown.name);
        text += &screen.wrapped(&format!(
            "\nCounts of traces are exact, times are not: --value {name} compares these.\n"
        ));
    }
    write_text(&text, None, screen)?;
    Ok(verdict(&failures))
}

/// The exit status, with a line that says why if it is not 0.
fn verdict(failures: &[String]) -> i32 {
    if failures.is_empty() {
        return 0;
    }
    let more = match failures.len().saturating_sub(SAID) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<_> = failures.iter().take(SAID).map(String::as_str).collect();
    crate::say(&format!(
        "more calls than --fail-on allows: {}{more}",
        named.join(", ")
    ));
    EXCEEDED
}

fn page(diff: &CallDiff, options: &Options, files: [&PathBuf; 2], screen: &Screen) -> String {
    let mut text = head(diff, files, screen);
    let rows: Vec<_> = diff.rows.iter().filter(|row| row.delta() != 0).collect();
    if rows.is_empty() {
        text += "\nNothing differs.\n";
    } else {
        text += "\n";
        text += &table(&rows, options.limit, screen);
    }
    text + &screen.wrapped(&not_counted(diff))
}

fn head(diff: &CallDiff, files: [&PathBuf; 2], screen: &Screen) -> String {
    let total = &diff.total;
    let mut text = String::from("Type: calls of methods and blocks\n");
    for (title, value, file) in [
        ("Base:  ", total.base, files[0]),
        ("Target:", total.target, files[1]),
    ] {
        let file = file.display().to_string();
        text += &format!("{title} {} ({})\n", grouped(value), one_line(&file));
    }
    let mut text = screen.wrapped(&text);
    let change = format!("{} ({})", signed(total.delta()), percent(total));
    text += &format!("Total:  {}\n", screen.styled(style(total), &change));
    text
}

fn table(rows: &[&CallChange], limit: Option<usize>, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::new("delta"),
        Column::weighing("delta%", 3),
        Column::weighing("base", 1),
        Column::weighing("target", 2),
    ]);
    for row in rows.iter().take(limit.unwrap_or(rows.len())) {
        let cells = vec![
            signed(row.delta()),
            percent(row),
            grouped(row.base),
            grouped(row.target),
        ];
        let mut line = Row::of(&row.function, cells, 0.0);
        line.name = shown_name(row);
        line.style = style(row);
        table.push(line);
    }
    screen.table(&table) + &left_out(rows.len(), limit, SHOWS_MORE)
}

/// How many methods nothing can be said of.
fn not_counted(diff: &CallDiff) -> String {
    let verb = match diff.not_counted.len() {
        0 => return String::new(),
        1 => "method is",
        _ => "methods are",
    };
    let number = grouped(diff.not_counted.len() as i64);
    format!("\n{number} {verb} left out: one of the profiles has no count of the calls.\n")
}

fn signed(number: i64) -> String {
    format!("{}{}", plus(number), grouped(number))
}

fn percent(row: &CallChange) -> String {
    match row.percent() {
        Some(percent) => percent_text(percent),
        None if row.target == 0 => "0.0%".into(),
        None => "new".into(),
    }
}

fn style(row: &CallChange) -> Option<Style> {
    match row.delta() {
        0 => Some(Style::Dim),
        delta if delta > 0 => Some(Style::Hot),
        _ => Some(Style::Good),
    }
}

//! Source with what each line costs in the margin.

use super::Page;
use crate::report::screen::{Style, columns};
use crate::viewer::source_file;
use rperf_format::table::{Column, Row, Table};
use rperf_report::one_line::one_line;
use rperf_report::{LineValues, Listing};
use std::collections::BTreeMap;

/// Lines shown around each one with a value, where not all are.
const CONTEXT: u32 = 3;

/// The lines of functions or files.
pub fn annotate(page: &Page<'_>, found: &[Listing]) -> String {
    let mut text = page.head_about_callers();
    let legend = "self: at the line itself, without what it calls; total: with it\n";
    text += &page.screen.wrapped(legend);
    let all = found.len();
    for listing in found.iter().take(page.limit.unwrap_or(all)) {
        let [total, own] = [listing.total_value, listing.self_value];
        text += &super::heading(page, &listing.function, total, own);
        text += &lines(page, listing);
    }
    text + &super::more(page, all, "listings")
}

fn lines(page: &Page<'_>, listing: &Listing) -> String {
    let source = source(&listing.function.path);
    let mut text = String::new();
    let shown = match &source {
        Ok(source) => shown_lines(listing, source),
        Err(reason) => {
            let path = one_line(&listing.function.path);
            let path = page.screen.fitted_name(&path, columns(reason));
            text += &format!("{reason}{path}\n");
            listing.lines.keys().copied().filter(|it| *it > 0).collect()
        }
    };
    let scale = page.scale();
    let values = |values: Option<&LineValues>| match values {
        Some(values) => [values.self_value, values.total_value].map(|value| match value {
            0 => ".".to_string(),
            value => scale.text(value),
        }),
        None => [String::new(), String::new()],
    };
    let row = |[own, total]: [String; 2], number: String, source: String| Row {
        cells: vec![own, total, number],
        name: source,
        is_text: true,
        ..Row::default()
    };
    let mut table = Table::new([
        Column::weighing("self", 1),
        Column::weighing("total", 2),
        Column::new(""),
    ]);
    let mut last = None;
    for line in shown {
        if last.is_some_and(|last| line > last + 1) {
            table.push(row(values(None), "⋯".into(), String::new()));
        }
        last = Some(line);
        let own_text = source.as_ref().ok().and_then(|source| {
            let lines = source.get(line as usize - 1)?;
            Some(
                one_line(&lines.replace('\t', "    "))
                    .trim_end()
                    .to_string(),
            )
        });
        let found = listing.lines.get(&line);
        let share = found.map_or(0.0, |values| page.share(values.total_value));
        let row = row(
            values(found),
            line.to_string(),
            own_text.unwrap_or_default(),
        );
        table.push(Row {
            style: Style::of_share(share),
            ..row
        });
    }
    if let Some(found) = listing.lines.get(&0) {
        let source = "(line not known)".to_string();
        table.push(row(values(Some(found)), String::new(), source));
    }
    text + &page.screen.table(&table)
}

/// The lines of the file, if it is there and is Ruby code, links followed: a profile can name any file.
/// Otherwise the head of a line that says why there are none.
fn source(path: &str) -> Result<Vec<String>, &'static str> {
    const LARGEST: u64 = 16 << 20;
    const NONE: &str = "  no source: ";
    let path = source_file::resolved(path).ok_or(NONE)?;
    let text = source_file::read(&path, LARGEST).ok_or(NONE)?;
    if !source_file::is_ruby(&path) && !source_file::is_script(&text) {
        return Err(
            "  not called a Ruby file, and no script with '#!' and 'ruby' in its first line: ",
        );
    }
    Ok(text.lines().map(String::from).collect())
}

/// Which lines are shown: all of a method, or those with a value and some around them.
fn shown_lines(listing: &Listing, source: &[String]) -> Vec<u32> {
    let mut shown: BTreeMap<u32, ()> = BTreeMap::new();
    let last = source.len() as u32;
    let method = end_of_method(listing, source).map(|end| listing.first_line..=end);
    for line in listing.lines.keys().copied().filter(|line| *line > 0) {
        let is_in_method = method.as_ref().is_some_and(|lines| lines.contains(&line));
        let around = match &method {
            Some(lines) if is_in_method => lines.clone(),
            _ => line.saturating_sub(CONTEXT).max(1)..=line.saturating_add(CONTEXT).min(last),
        };
        shown.extend(around.map(|line| (line, ())));
        shown.insert(line, ());
    }
    shown.into_keys().collect()
}

/// The line of the `end` that stands as far to the right as the method's first line.
fn end_of_method(listing: &Listing, source: &[String]) -> Option<u32> {
    if listing.function.name.is_empty() || listing.first_line == 0 {
        return None;
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let first = source.get(listing.first_line as usize - 1)?;
    if !first.trim_start().starts_with("def ") {
        return None;
    }
    let rest = source.iter().enumerate().skip(listing.first_line as usize);
    let mut ends = rest.filter(|(_, line)| {
        indent(line) == indent(first) && line.trim_start().split(' ').next() == Some("end")
    });
    ends.next().map(|(place, _)| place as u32 + 1)
}

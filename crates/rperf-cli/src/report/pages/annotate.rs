//! Source with what each line costs in the margin.

use super::{Page, title};
use crate::report::screen::{Style, columns};
use rperf_report::one_line::one_line;
use rperf_report::{LineValues, Listing, Scale};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Lines shown around each one with a value, where not all are.
const CONTEXT: u32 = 3;

/// The lines of functions or files.
pub fn annotate(page: &Page<'_>, found: &[Listing]) -> String {
    let mut text = page.head();
    text += "self: at the line itself, without what it calls; total: with it\n";
    let all = found.len();
    for listing in found.iter().take(page.limit.unwrap_or(all)) {
        text += &format!(
            "\n{}: {}, self {}\n",
            page.screen
                .styled(Some(Style::Bold), &title(&listing.function)),
            page.value_with_percent(listing.total_value),
            page.value_with_percent(listing.self_value),
        );
        text += &lines(page, listing);
    }
    text + &super::more(page, all, "listings")
}

fn lines(page: &Page<'_>, listing: &Listing) -> String {
    let source = source(&listing.function.path);
    let mut text = String::new();
    let shown = match &source {
        Some(source) => shown_lines(listing, source),
        None => {
            let path = one_line(&listing.function.path);
            text += &format!("  (the source is not here: {path})\n");
            listing.lines.keys().copied().filter(|it| *it > 0).collect()
        }
    };
    let margin = Margin::new(page, listing);
    let number_width = shown.last().map_or(1, |line| line.to_string().len());
    text += &margin.heading();
    let mut last = None;
    for line in shown {
        if last.is_some_and(|last| line > last + 1) {
            text += &format!("{}  {:>number_width$}\n", margin.of(None), "⋯");
        }
        last = Some(line);
        let values = listing.lines.get(&line);
        let own_text = source.as_ref().and_then(|source| {
            let lines = source.get(line as usize - 1)?;
            Some(one_line(&lines.replace('\t', "    ")).into_owned())
        });
        let used = margin.width + 4 + number_width;
        let own_text = page
            .screen
            .fitted(&own_text.unwrap_or_default(), used)
            .trim_end()
            .to_string();
        let share = values.map_or(0.0, |values| page.share(values.total_value));
        let margin = page
            .screen
            .styled(Style::of_share(share), &margin.of(values));
        text += format!("{margin}  {line:>number_width$}  {own_text}").trim_end();
        text.push('\n');
    }
    if let Some(values) = listing.lines.get(&0) {
        text += &format!("{}  (line not known)\n", margin.of(Some(values)));
    }
    text
}

/// The columns of numbers beside the source.
struct Margin {
    scale: Scale,
    cell: usize,
    width: usize,
}

impl Margin {
    fn new(page: &Page<'_>, listing: &Listing) -> Self {
        let scale = page.scale();
        let values = listing.lines.values();
        let widest = values
            .flat_map(|values| [values.self_value, values.total_value])
            .map(|value| columns(&scale.text(value)))
            .max();
        let cell = widest.unwrap_or(0).max("total".len());
        Self {
            scale,
            cell,
            width: 2 * cell + 2,
        }
    }

    fn heading(&self) -> String {
        let cell = self.cell;
        format!("{:>cell$}  {:>cell$}\n", "self", "total")
    }

    fn of(&self, values: Option<&LineValues>) -> String {
        let cell = self.cell;
        let text = |value: i64| match value {
            0 => ".".to_string(),
            value => self.scale.text(value),
        };
        let [own, total] = match values {
            Some(values) => [values.self_value, values.total_value].map(text),
            None => [String::new(), String::new()],
        };
        format!("{}{own}  {}{total}", pad(&own, cell), pad(&total, cell))
    }
}

fn pad(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(columns(text)))
}

/// The lines of the file, if it is there and is text.
fn source(path: &str) -> Option<Vec<String>> {
    const LARGEST: u64 = 16 << 20;
    let path = Path::new(path);
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let text = String::from_utf8_lossy(&fs::read(path).ok()?).into_owned();
    Some(text.lines().map(String::from).collect())
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

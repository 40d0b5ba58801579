//! The pages of `rperf diff`. They do no I/O.

use super::options::Options;
use super::percent::percent_text;
use crate::left_out::{SHOWS_MORE, left_out};
use crate::report::screen::{Screen, Style};
use rperf_format::table::{Column, Row, Table};
use rperf_model::Suite;
use rperf_report::numbers::counted;
use rperf_report::one_line::{function_name, one_line};
use rperf_report::{Change, Diff, DiffRow, Normalize, Run, Scale, nanoseconds_per};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What both pages are made with.
pub struct Page<'a> {
    /// What has changed.
    pub diff: &'a Diff,
    /// Where the page goes.
    pub screen: Screen,
    /// How many rows a table has; `None`: all.
    pub limit: Option<usize>,
    /// The runs of the base, and of the target.
    pub sides: [&'a [Run]; 2],
    /// What the user asked for.
    pub options: &'a Options,
}

/// A single table of all that differs.
pub fn top(page: &Page<'_>) -> String {
    let rows: Vec<&DiffRow> = page.diff.rows.iter().collect();
    let mut text = head(page);
    if rows.is_empty() {
        return text + "\nNothing differs.\n" + &foot(page);
    }
    text += "\n";
    text += &table(page, &rows);
    text + &foot(page)
}

/// A table for each direction, without what may be noise.
pub fn text(page: &Page<'_>) -> String {
    let mut text = head(page);
    let (more, less) = (word(page, Change::More), word(page, Change::Less));
    for (title, change) in [
        (more, Change::More),
        (less, Change::Less),
        ("not known to be noise or not", Change::Unknown),
    ] {
        let rows: Vec<&DiffRow> = page.diff.with(change).collect();
        if change == Change::Unknown && rows.is_empty() {
            continue;
        }
        let title = capitalized(title);
        text += &format!(
            "\n{}\n",
            page.screen.styled(Some(Style::Bold), &format!("{title}:"))
        );
        if rows.is_empty() {
            text += "  nothing beyond the noise\n";
        } else {
            text += &table(page, &rows);
        }
    }
    text += &within_noise(page);
    text + &foot(page)
}

/// How many rows differ within the noise, as a paragraph; nothing if none does.
pub fn within_noise(page: &Page<'_>) -> String {
    let rows = page.diff.with(Change::Noise);
    let names: Vec<&str> = rows.map(|row| &*row.function.name).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("\n{}\n", differ_within_noise(page.diff.is_of_tests, &names)),
    }
}

/// The rows with these names as a sentence: hooks are no tests.
fn differ_within_noise(are_tests: bool, names: &[&str]) -> String {
    let are_hooks = |name: &&&str| are_tests && **name == Suite::HOOKS;
    let hooks = names.iter().filter(are_hooks).count() as i64;
    let others = names.len() as i64 - hooks;
    let noun = if are_tests { "test" } else { "method" };
    let verb = if names.len() == 1 && hooks == 0 {
        "differs"
    } else {
        "differ"
    };
    let subject = match (others, hooks) {
        (_, 0) => counted(others, noun),
        (0, _) => format!("Hooks of {}", counted(hooks, "file")),
        _ => format!(
            "{} and hooks of {}",
            counted(others, noun),
            counted(hooks, "file")
        ),
    };
    format!("{subject} {verb} within the noise.")
}

fn foot(page: &Page<'_>) -> String {
    let lines: Vec<_> = notes(page).into_iter().map(|it| it + "\n").collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}", page.screen.wrapped(&lines.concat())),
    }
}

/// Sentences about the way the sides were recorded, where it matters.
pub fn notes(page: &Page<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let traced = page.sides.map(|runs| runs.iter().all(|run| run.is_traced));
    let sides = match traced {
        [true, false] => Some(["base", "target"]),
        [false, true] => Some(["target", "base"]),
        _ => None,
    };
    let is_of_time = nanoseconds_per(&page.diff.value_type.unit).is_some();
    if let Some([trace, samples]) = sides.filter(|_| is_of_time) {
        notes.push(format!(
            "The {trace} is a trace, the {samples} isn't: the cost of tracing is left out of a \
             trace's times by its mean per call, which isn't exact for short methods."
        ));
    }
    if page.diff.with(Change::Unknown).next().is_some() {
        let why = match page.diff.is_of_tests {
            true => "a test takes more or less in each run",
            false => "samples aren't counted on both sides",
        };
        notes.push(format!(
            "unknown: {why}, so only several runs of each tell noise (rperf record --runs)."
        ));
    }
    if traced == [true; 2] && !page.diff.is_exact {
        notes.push(
            "Counts of traces are exact, times are not: --calls compares counts.".to_string(),
        );
    }
    notes
}

/// `text` as a heading.
pub fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + rest.as_str()
}

/// What both sides are, and how all has changed.
fn head(page: &Page<'_>) -> String {
    let Diff {
        value_type, total, ..
    } = page.diff;
    let scale = scale(page);
    let of_each = match page.diff.per_request {
        Some(_) => ", per request",
        None => "",
    };
    let of_tests = match page.diff.is_of_tests {
        true => " of tests",
        false => "",
    };
    let mut text = format!("Type: {}{of_tests}{of_each}\n", one_line(&value_type.name));
    let sides = [
        ("Base:  ", &page.options.base, page.sides[0], total.base),
        ("Target:", &page.options.target, page.sides[1], total.target),
    ];
    for (files_of, (title, files, runs, value)) in sides.into_iter().enumerate() {
        let mean = match runs.len() {
            1 => String::new(),
            count => format!(", mean of {count} runs"),
        };
        let mut counts = runs.iter().map(|run| run.samples);
        let samples = counts.try_fold(0_i64, |sum, count| Some(sum.saturating_add(count?)));
        let samples = samples.map(|samples| format!(", {}", counted(samples, "sample")));
        let requests = requests(page, files_of).map_or_else(String::new, |it| format!(", {it}"));
        text += &format!(
            "{title} {}{requests}{mean}{} ({})\n",
            amount(page, scale.text(value)),
            samples.unwrap_or_default(),
            one_line(&files_text(files))
        );
    }
    if let Some(idle) = idle(page) {
        text += &format!("Idle:   {idle}\n");
    }
    if let Some(normalized) = normalized(page.options) {
        text += &format!("Scaled: {normalized}\n");
    }
    let [base, target] = page.sides;
    for (side, runs, others) in [("base", base, target), ("target", target, base)] {
        for what in missing_in(runs).difference(&missing_in(others)) {
            text += &format!("Missing: in the {side} only, {}\n", one_line(what));
        }
    }
    let (style, verdict) = (style(total), verdict(page, total));
    let change = format!(
        "{} ({}), {verdict}",
        amount(page, signed(&scale, total.delta())),
        percent(total)
    );
    let text = page.screen.wrapped(&text);
    text + &format!("Total:  {}\n", page.screen.styled(style, &change))
}

fn missing_in(runs: &[Run]) -> BTreeSet<&str> {
    let all = runs.iter().flat_map(|run| &run.missing);
    all.map(String::as_str).collect()
}

/// The most files that are named one by one.
const NAMED: usize = 4;

/// The files of a side. Of many, which differ by a number in their names, the first.
fn files_text(files: &[PathBuf]) -> String {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    match &names[..] {
        [first, rest @ ..] if rest.len() >= NAMED => format!("{first} and {} more", rest.len()),
        names => names.join(", "),
    }
}

/// How much time of idle threads is left out of each side, in words.
pub fn idle(page: &Page<'_>) -> Option<String> {
    let idle = page.diff.idle;
    let largest = idle.into_iter().max().filter(|idle| *idle > 0)?;
    let [base, target] = idle.map(|idle| Scale::new(&page.diff.value_type, largest).text(idle));
    Some(format!(
        "{base} in the base and {target} in the target hidden, --idle shows them"
    ))
}

/// How the runs are scaled, in words.
pub fn normalized(options: &Options) -> Option<String> {
    Some(match (options.normalize, &options.label) {
        (Normalize::No, _) => return None,
        (Normalize::Total, _) => "each run as if it had the base's total".to_string(),
        (Normalize::Duration, _) => "each run as if it had taken as long as the base".to_string(),
        // The values say it.
        (Normalize::Requests, _) => return None,
        (Normalize::Label, key) => {
            let key = one_line(key.as_deref().unwrap_or_default());
            format!("each run as if it had as many values of {key} as the base")
        }
    })
}

/// How values are written.
pub fn scale(page: &Page<'_>) -> Scale {
    let total = &page.diff.total;
    let (value_type, largest) = (&page.diff.value_type, total.base.max(total.target));
    match page.diff.per_request {
        Some(per) => Scale::of_each(value_type, largest, per.scaled_to),
        None => Scale::new(value_type, largest),
    }
}

/// A value of a head, which says that it is one request's if it is.
pub fn amount(page: &Page<'_>, text: String) -> String {
    match page.diff.per_request {
        Some(_) => format!("{text} a request"),
        None => text,
    }
}

/// How many requests a side has, where values are those of one: the base is 0.
pub fn requests(page: &Page<'_>, side: usize) -> Option<String> {
    let per = page.diff.per_request?;
    let count = per.requests.get(side).copied().unwrap_or_default();
    Some(counted(count, "request"))
}

fn table(page: &Page<'_>, rows: &[&DiffRow]) -> String {
    let scale = scale(page);
    let mut table = Table::new([
        Column::new("delta"),
        Column::weighing("delta%", 3),
        Column::weighing("base", 1),
        Column::weighing("target", 2),
        Column::new(""),
    ]);
    for row in rows.iter().take(page.limit.unwrap_or(rows.len())) {
        let cells = vec![
            signed(&scale, row.delta()),
            percent(row),
            scale.text(row.base),
            scale.text(row.target),
            verdict(page, row).to_string(),
        ];
        let mut line = Row::of(&row.function, cells, 0.0);
        line.style = style(row);
        table.push(line);
    }
    page.screen.table(&table) + &left_out(rows.len(), page.limit, SHOWS_MORE)
}

fn signed(scale: &Scale, value: i64) -> String {
    format!("{}{}", scale.plus(value), scale.text(value))
}

/// The difference in percent, with its sign.
pub fn percent(row: &DiffRow) -> String {
    match row.percent() {
        Some(percent) => percent_text(percent),
        None if row.target == 0 => "0.0%".to_string(),
        None => "new".to_string(),
    }
}

fn style(row: &DiffRow) -> Option<Style> {
    match row.change {
        Change::More => Some(Style::Hot),
        Change::Less => Some(Style::Good),
        Change::Noise | Change::Unknown => Some(Style::Dim),
    }
}

/// What can be said about a difference.
pub fn verdict(page: &Page<'_>, row: &DiffRow) -> &'static str {
    match row.change {
        Change::Noise if row.delta() == 0 => "no change",
        change => word(page, change),
    }
}

/// The verdict in one word, for the values of the page.
pub fn word(page: &Page<'_>, change: Change) -> &'static str {
    change.word(&page.diff.value_type.unit)
}

/// A row in a sentence.
pub fn name(row: &DiffRow) -> String {
    let name = match &*row.function.name {
        "" if row.function.path.is_empty() => "the total".into(),
        name => function_name(name),
    };
    named(&name, row)
}

/// A name of its own for a row, and by how much that differs.
pub fn named(name: &str, row: &DiffRow) -> String {
    match row.percent() {
        Some(percent) => format!("{name} ({})", percent_text(percent)),
        None => format!("{name} (new)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_no_tests() {
        assert_eq!(
            differ_within_noise(true, &["a"]),
            "1 test differs within the noise."
        );
        assert_eq!(
            differ_within_noise(true, &["a", "b"]),
            "2 tests differ within the noise."
        );
        assert_eq!(
            differ_within_noise(false, &["a", "[hooks]"]),
            "2 methods differ within the noise."
        );
        assert_eq!(
            differ_within_noise(true, &["a", "[hooks]"]),
            "1 test and hooks of 1 file differ within the noise."
        );
        assert_eq!(
            differ_within_noise(true, &["[hooks]", "[hooks]"]),
            "Hooks of 2 files differ within the noise."
        );
    }

    #[test]
    fn of_many_files_the_first_is_named() {
        let files: Vec<PathBuf> = (1..=5).map(|run| format!("a.{run}").into()).collect();
        assert_eq!(files_text(&files[..4]), "a.1, a.2, a.3, a.4");
        assert_eq!(files_text(&files), "a.1 and 4 more");
    }
}

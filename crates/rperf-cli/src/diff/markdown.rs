//! The comparison in Markdown, to paste into a pull request. Does no I/O.

use super::pages::{
    self, Page, capitalized, idle, normalized, notes, percent, requests, scale, verdict,
    within_noise, word,
};
use rperf_format::markdown::amount;
use rperf_format::markdown::text::{Table, code, left_out, location, name};
use rperf_report::{Change, DiffRow, Run};
use std::path::PathBuf;

/// What has changed, without what may be noise.
pub fn markdown(page: &Page<'_>) -> String {
    let mut text = head(page);
    let changes = [Change::More, Change::Less, Change::Unknown];
    for change in changes {
        let rows: Vec<&DiffRow> = page.diff.with(change).collect();
        if rows.is_empty() && change == Change::Unknown {
            continue;
        }
        let title = match change {
            Change::Unknown => "Not known to be noise or not".to_string(),
            change => capitalized(word(page, change)),
        };
        let of_each = match page.diff.per_request {
            Some(_) => ", per request",
            None => "",
        };
        text += &format!("\n### {title}{of_each}\n\n{}", table(page, &rows));
    }
    text += &within_noise(page);
    for note in notes(page) {
        text += &format!("\n{note}\n");
    }
    text
}

fn head(page: &Page<'_>) -> String {
    let (diff, options) = (page.diff, page.options);
    let total = &diff.total;
    let (delta, percent) = (signed(page, total.delta()), percent(total));
    let verdict = verdict(page, total);
    let name = code(&diff.value_type.name);
    let delta = of_head(page, delta);
    let mut text =
        format!("## Comparison\n\nThe total ({name}): {delta} ({percent}), {verdict}.\n\n");
    let [base, target] = page.sides;
    text += &side(page, 0, &options.base, base, total.base);
    text += &side(page, 1, &options.target, target, total.target);
    if let Some(idle) = idle(page) {
        text += &format!("- Idle threads: {idle}\n");
    }
    if let Some(normalized) = normalized(options) {
        text += &format!("- Scaled: {}\n", code(&normalized));
    }
    text
}

fn side(page: &Page<'_>, side: usize, files: &[PathBuf], runs: &[Run], value: i64) -> String {
    let files: Vec<_> = files
        .iter()
        .map(|it| code(&it.display().to_string()))
        .collect();
    let mean = match runs.len() {
        1 => String::new(),
        count => format!(", mean of {count} runs"),
    };
    let title = ["Base", "Target"][side];
    let value = of_head(page, amount(&scale(page), value));
    let requests = requests(page, side).map_or_else(String::new, |it| format!(", {it}"));
    format!(
        "- {title}: {value}{requests}{mean} ({})\n",
        files.join(", ")
    )
}

fn table(page: &Page<'_>, rows: &[&DiffRow]) -> String {
    if rows.is_empty() {
        return "Nothing beyond the noise.\n".to_string();
    }
    let scale = scale(page);
    let [name_of, place] = match page.diff.is_of_tests {
        true => ["test", "id"],
        false => ["method", "file"],
    };
    let mut table = Table::new(&["delta", "delta%", "base", "target", name_of, place], 4);
    let shown = page.limit.unwrap_or(rows.len());
    for row in rows.iter().take(shown) {
        table.row([
            signed(page, row.delta()),
            percent(row),
            amount(&scale, row.base),
            amount(&scale, row.target),
            name(&row.function),
            location(&row.function.short_path, 0),
        ]);
    }
    table.text() + &left_out(rows.len().saturating_sub(shown))
}

/// A value that says that it is one request's if it is.
fn of_head(page: &Page<'_>, text: String) -> String {
    pages::amount(page, text)
}

fn signed(page: &Page<'_>, value: i64) -> String {
    let scale = scale(page);
    format!("{}{}", scale.plus(value), amount(&scale, value))
}

//! The table of memory.

use super::page::Page;
use super::table::heading;
use crate::app::App;
use crate::line::What;
use crate::text::{fitted, percent, share};
use ratatui::layout::Rect;
use ratatui::style::Style;
use rperf_watch::sums::Sums;

/// Columns of a number, with the gap in front of it.
const NUMBER: usize = 12;

/// Columns in front of the names.
const BEFORE: usize = 3 * NUMBER + 2;

pub fn draw(page: &mut Page<'_>, app: &App, sums: &Sums, area: Rect) {
    let bold = page.look.bold();
    for (place, title) in ["RSS", "RSS %", "change"].into_iter().enumerate() {
        page.put(place * NUMBER, area.y, &format!("{title:>NUMBER$}"), bold);
    }
    let lacks = lacks(sums);
    let title = match lacks.is_empty() {
        true => "of (change: since you looked at it first)",
        false => "of (not all is known; change: since it was known so)",
    };
    page.put(BEFORE, area.y, title, bold);
    let lines = usize::from(area.height) - 1;
    let mut free = area.y + 1;
    for ((line, is_chosen), y) in app.seen(lines).zip(area.y + 1..) {
        free = y + 1;
        match line.what {
            What::Process(process) => heading(page, sums, process, y),
            What::Memory(process, row) => draw_row(page, sums, process, row, y),
            _ => {}
        }
        if is_chosen {
            page.style(y, page.look.chosen());
        }
    }
    if app.table.lines.is_empty() {
        let text = missing(app, sums);
        let text = fitted(&text, page.width().saturating_sub(2), page.look);
        page.put(2, area.y + 1, &text, Style::new());
        return;
    }
    // Below the rows, as far as there is room.
    let room = page.width().saturating_sub(2);
    let texts = lacks.iter().flat_map(|it| folded(it, room));
    for (text, y) in texts.zip(free + 1..area.y + area.height) {
        let text = fitted(&text, room, page.look);
        page.put(2, y, &text, Style::new());
    }
}

/// What isn't known of the programs, each line once.
fn lacks(sums: &Sums) -> Vec<String> {
    let mut lacks: Vec<String> = Vec::new();
    for text in sums.living().flat_map(|it| &it.memory.lacks) {
        if !lacks.contains(text) {
            lacks.push(text.clone());
        }
    }
    lacks
}

/// The text in lines of at most so many characters, as far as its words allow.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

fn draw_row(page: &mut Page<'_>, sums: &Sums, process: u32, row: Option<u32>, y: u16) {
    let Some(memory) = sums.processes.get(process as usize).map(|it| &it.memory) else {
        return;
    };
    let total = memory.total();
    let row = row.and_then(|row| memory.rows.get(row as usize));
    let (title, (rss, at_first)) = match row {
        Some(row) => (&*row.title, (row.rss, row.at_first)),
        None => ("in all", total),
    };
    let part = share(rss, total.0);
    let style = match row {
        Some(_) => page.look.of_share(part),
        None => page.look.bold(),
    };
    let cells = [megabytes(rss), percent(part), change(rss, at_first)];
    for (place, text) in cells.iter().enumerate() {
        page.put(place * NUMBER, y, &format!("{text:>NUMBER$}"), style);
    }
    let room = page.width().saturating_sub(BEFORE);
    let title = fitted(title, room, page.look);
    page.put(BEFORE, y, &title, style);
}

/// Why there is nothing.
fn missing(app: &App, sums: &Sums) -> String {
    let mut reasons = sums.living().filter_map(|it| it.memory.why_not.as_deref());
    match reasons.next() {
        _ if sums.is_saved() => "a saved profile doesn't say what memory was of".into(),
        Some(why) => why.into(),
        None if !app.asked.search.is_empty() => "nothing is found (Esc: all)".into(),
        None => "the program is being asked".into(),
    }
}

/// A change with its sign; one that rounds to 0 has none.
fn change(now: u64, before: u64) -> String {
    let change = megabytes(now.abs_diff(before));
    let sign = match change == megabytes(0) {
        true => "",
        false if now > before => "+",
        false => "-",
    };
    format!("{sign}{change}")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / (1 << 20) as f64)
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn a_change_that_rounds_to_zero_has_no_sign() {
        let changes = [(7, 7), (1000, 7), (7, 1000)].map(|(now, before)| change(now, before));
        assert_eq!(changes, ["0.0 MB"; 3]);
        let changes = [(3, 1), (1, 3)].map(|(now, before)| change(now << 20, before << 20));
        assert_eq!(changes, ["+2.0 MB", "-2.0 MB"]);
    }
}

//! Tables of the guide as text: columns under one another, long cells in several lines. Called by
//! `help` for pages of the guide.

use super::inline::inline;
use super::wrap::{FIRM, lines};
use unicode_width::UnicodeWidthStr;

/// Between two columns.
const GAP: &str = "  ";
/// Columns aren't made narrower than this, if a wider one is left.
const NARROW: usize = 8;

/// The table in lines of at most `width` columns, unless single words are too long for that.
pub fn render(rows: &[&str], width: usize) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let (head, body) = (&rows[..1], rows.get(2..).unwrap_or_default());
    let shown: Vec<&Vec<String>> = head.iter().chain(body).collect();
    let widths = widths(&shown, width);
    let mut text = String::new();
    for (number, row) in shown.iter().enumerate() {
        text += &render_row(row, &widths);
        if number == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            text += &format!("{}\n", rule.join(GAP));
        }
    }
    text
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| inline(cell.trim())).collect()
}

/// The natural widths, or, where they are too much together, the widest ones made narrower.
fn widths(rows: &[&Vec<String>], width: usize) -> Vec<usize> {
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let widest = |column: usize, measure: fn(&str) -> usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| measure(cell)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns)
        .map(|it| widest(it, UnicodeWidthStr::width))
        .collect();
    let least: Vec<usize> = (0..columns)
        .map(|it| widest(it, longest_word).max(NARROW))
        .collect();
    let room = width.saturating_sub(GAP.len() * columns.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let wider = (0..columns).filter(|&it| widths[it] > least[it]);
        let Some(column) = wider.max_by_key(|&it| widths[it]) else {
            break;
        };
        widths[column] -= 1;
    }
    widths
}

fn longest_word(cell: &str) -> usize {
    let words = cell.split(' ').map(UnicodeWidthStr::width);
    words.max().unwrap_or(0)
}

/// The text of a row, which has as many lines as its longest cell needs.
fn render_row(row: &[String], widths: &[usize]) -> String {
    let cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| lines(cell, *width))
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = String::new();
    for number in 0..height {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let part = cell.get(number).map_or("", String::as_str);
            let missing = width.saturating_sub(part.width());
            line += &format!("{part}{}{GAP}", " ".repeat(missing));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text.replace(FIRM, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 4] = [
        "| name | meaning |",
        "| --- | --- |",
        "| `a b` | short |",
        "| `long-name` | one that needs more than a line |",
    ];

    #[test]
    fn columns_are_aligned() {
        let expected = "\
name       meaning
---------  -------------------------------
a b        short
long-name  one that needs more than a line
";
        assert_eq!(render(&ROWS, 80), expected);
    }

    #[test]
    fn long_cells_take_several_lines() {
        let expected = "\
name       meaning
---------  -------------------
a b        short
long-name  one that needs more
           than a line
";
        assert_eq!(render(&ROWS, 30), expected);
    }

    #[test]
    fn no_width_is_too_small() {
        assert!(render(&ROWS, 0).contains("long-name"));
    }
}

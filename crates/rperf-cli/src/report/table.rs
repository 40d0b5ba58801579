//! Tables: numbers aligned to the right, a name at the end that fits the terminal. Used
//! by the pages of `rperf report` and `rperf diff`.

use super::screen::{Screen, Style, columns};
use rperf_report::Function;
use rperf_report::one_line::{function_name, one_line};

/// A table in the making.
#[derive(Debug, Default)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug)]
pub struct Row {
    /// The columns of numbers.
    pub cells: Vec<String>,
    /// How these are shown.
    pub style: Option<Style>,
    /// What stands in front of the name: the lines of a tree.
    pub prefix: String,
    /// What the row is about.
    pub name: String,
    /// What is known beside the name: its path.
    pub detail: String,
}

impl Row {
    /// A row about a function.
    pub fn of(function: &Function, cells: Vec<String>, percent: f64) -> Self {
        let path = one_line(&function.short_path);
        Row {
            cells,
            style: Style::of_share(percent),
            prefix: String::new(),
            name: function_name(&function.name).into_owned(),
            detail: match &*path {
                "" => String::new(),
                path => format!(" ({path})"),
            },
        }
    }
}

impl Table {
    /// A table with these headings; the one of the names is empty.
    pub fn new(header: &[&str]) -> Self {
        Self {
            header: header.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a line.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The lines of the table.
    pub fn render(&self, screen: &Screen) -> String {
        let widths: Vec<usize> = self
            .header
            .iter()
            .enumerate()
            .map(|(place, heading)| {
                let cells = self.rows.iter().filter_map(|row| row.cells.get(place));
                let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
                widest.max(columns(heading))
            })
            .collect();
        let mut text = String::new();
        if self.header.iter().any(|heading| !heading.is_empty()) {
            let heading = aligned(&self.header, &widths);
            text += screen.styled(Some(Style::Bold), &heading).trim_end();
            text.push('\n');
        }
        for row in &self.rows {
            let numbers = aligned(&row.cells, &widths);
            let used = columns(&numbers) + 2 + columns(&row.prefix);
            let shown = screen.fitted(&format!("{}{}", row.name, row.detail), used);
            text += &screen.styled(row.style, &numbers);
            text += "  ";
            text += &row.prefix;
            match shown.strip_prefix(&row.name) {
                Some(detail) if !detail.is_empty() => {
                    text += &row.name;
                    text += &screen.styled(Some(Style::Dim), detail);
                }
                _ => text += &shown,
            }
            text.push('\n');
        }
        text
    }
}

fn aligned(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths).map(|(cell, width)| {
        let blanks = width.saturating_sub(columns(cell));
        format!("{}{cell}", " ".repeat(blanks))
    });
    cells.collect::<Vec<_>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right() {
        let mut table = Table::new(&["flat", "flat%"]);
        for (name, value, percent) in [("a", "1,000.0 ms", "99.9%"), ("b\n", "2 µs", "0.1%")] {
            let function = Function {
                name: name.to_string(),
                path: "/srv/a.rb".to_string(),
                short_path: "a.rb".to_string(),
            };
            table.push(Row::of(
                &function,
                vec![value.to_string(), percent.to_string()],
                0.0,
            ));
        }
        assert_eq!(
            table.render(&Screen::default()),
            "      flat  flat%\n1,000.0 ms  99.9%  a (a.rb)\n      2 µs   0.1%  b  (a.rb)\n"
        );
    }
}

//! Tables for people: columns of numbers, then a name. On a terminal they fit its width: columns that
//! matter less are hidden, and names and paths lose their middle. Used by the text format and by the
//! pages of the command; any thread.

use crate::shorten::{LEAST, columns, cut, least_columns, shortened};
use rperf_report::Function;
use rperf_report::one_line::{function_name, one_line};

/// Columns that names have before others are hidden for them.
const NAMES: usize = 30;

/// Between two columns.
const GAP: &str = "  ";

/// Columns of each step of a tree's lines.
const STEP: usize = 3;

/// A colour or weight of text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Headings.
    Bold,
    /// What matters less: paths.
    Dim,
    /// What has most of the time; something that got slower.
    Hot,
    /// What has much of it.
    Warm,
    /// Something that got faster.
    Good,
}

impl Style {
    /// The style for a row with this share of all, in percent.
    pub fn of_share(percent: f64) -> Option<Self> {
        match percent.abs() {
            share if share >= 20.0 => Some(Style::Hot),
            share if share >= 5.0 => Some(Style::Warm),
            _ => None,
        }
    }
}

/// What a table is drawn on.
#[derive(Clone, Copy)]
pub struct Surface<'a> {
    /// Columns of the terminal; `None`: nothing is cut.
    pub width: Option<usize>,
    /// Text in a style.
    pub styled: &'a dyn Fn(Option<Style>, &str) -> String,
}

impl Surface<'_> {
    /// A file or pipe.
    pub const PLAIN: Surface<'static> = Surface {
        width: None,
        styled: &|_, text| text.to_string(),
    };
}

/// A column in front of the names.
#[derive(Debug, Clone)]
pub struct Column {
    heading: String,
    /// The columns with the least are hidden first; `None`: never.
    weight: Option<u8>,
    is_left: bool,
}

impl Column {
    /// A column that is always shown.
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            heading: heading.into(),
            weight: None,
            is_left: false,
        }
    }

    /// A column that is hidden where there is no room, those with a smaller weight first.
    pub fn weighing(heading: impl Into<String>, weight: u8) -> Self {
        Self {
            weight: Some(weight),
            ..Self::new(heading)
        }
    }

    /// The column with its cells aligned to the left.
    #[must_use]
    pub fn to_the_left(self) -> Self {
        Self {
            is_left: true,
            ..self
        }
    }
}

/// A table in the making.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    names: String,
    rows: Vec<Row>,
}

/// A line of a table.
#[derive(Debug, Default)]
pub struct Row {
    /// The columns of numbers.
    pub cells: Vec<String>,
    /// How these are shown.
    pub style: Option<Style>,
    /// What stands in front of the name: the lines of a tree.
    pub prefix: String,
    /// What the row is about.
    pub name: String,
    /// What is known beside the name, shown in parentheses: its path.
    pub detail: String,
    /// Whether the name is shortened for the detail, rather than the detail left out.
    pub needs_detail: bool,
    /// What is said of the row at its end.
    pub note: String,
    /// Whether the name is text, which loses its end rather than its middle.
    pub is_text: bool,
}

impl Row {
    /// A row about a function.
    pub fn of(function: &Function, cells: Vec<String>, percent: f64) -> Self {
        Row {
            cells,
            style: Style::of_share(percent),
            name: function_name(&function.name).into_owned(),
            detail: one_line(&function.short_path).into_owned(),
            ..Row::default()
        }
    }

    /// The columns of all that follows the numbers.
    fn columns(&self) -> usize {
        let detail = match columns(&self.detail) {
            0 => 0,
            detail => detail + PARENTHESES,
        };
        columns(&self.prefix) + columns(&self.name) + detail + columns(&self.note)
    }

    fn name(&self) -> Name<'_> {
        Name {
            name: &self.name,
            detail: &self.detail,
            needs_detail: self.needs_detail,
            note: &self.note,
        }
    }
}

/// The parentheses around a detail, with the blank before them, in columns.
const PARENTHESES: usize = " ()".len();

/// A name with what is known beside it, as `name (detail)note`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Name<'a> {
    /// What it is about.
    pub name: &'a str,
    /// Its path.
    pub detail: &'a str,
    /// Whether the name is shortened for the detail, rather than the detail left out.
    pub needs_detail: bool,
    /// What is said of it.
    pub note: &'a str,
}

impl Name<'_> {
    /// The name, and what follows it, in `room` columns, or as many as can still be read.
    pub fn fitted(self, room: Option<usize>) -> (String, String) {
        let Some(room) = room.map(|room| room.max(LEAST)) else {
            return self.whole(self.name, self.detail, self.note);
        };
        let least = columns(self.name).min(LEAST);
        let note = cut(self.note, room - least);
        let note = if columns(self.note) > 0 && room - least < LEAST / 2 {
            "".into()
        } else {
            note
        };
        let room = room - columns(&note);
        if self.detail.is_empty() {
            return self.whole(&shortened(self.name, room), "", &note);
        }
        let for_detail = match self.needs_detail {
            true => columns(self.detail).min(LEAST) + PARENTHESES,
            false => 0,
        };
        let for_name = room.saturating_sub(for_detail).max(least);
        let name = shortened(self.name, for_name);
        let left = room.saturating_sub(columns(&name));
        if left >= least_columns(self.detail) + PARENTHESES {
            let detail = shortened(self.detail, left - PARENTHESES);
            return self.whole(&name, &detail, &note);
        }
        // That there is a detail is to be seen.
        let dots = if left >= 2 { " …" } else { "" };
        (name.into_owned(), format!("{dots}{note}"))
    }

    fn whole(self, name: &str, detail: &str, note: &str) -> (String, String) {
        let detail = match detail {
            "" => String::new(),
            detail => format!(" ({detail})"),
        };
        (name.to_string(), format!("{detail}{note}"))
    }
}

impl Table {
    /// A table with these columns in front of the names.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The table with a heading for the names.
    #[must_use]
    pub fn with_names(self, heading: &str) -> Self {
        Self {
            names: heading.to_string(),
            ..self
        }
    }

    /// Adds a line.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// The lines of the table.
    pub fn render(&self, surface: Surface<'_>) -> String {
        let widths = self.widths();
        let shown = self.shown(&widths, surface.width);
        let mut text = self.hidden(&shown, surface);
        let headings: Vec<_> = self.columns.iter().map(|it| it.heading.clone()).collect();
        let heading = self.aligned(&headings, &widths, &shown);
        let heading = format!("{heading}{GAP}{}", self.names);
        if !heading.trim().is_empty() {
            text += &(surface.styled)(Some(Style::Bold), heading.trim_end());
            text.push('\n');
        }
        for row in &self.rows {
            let numbers = self.aligned(&row.cells, &widths, &shown);
            let room = surface
                .width
                .map(|width| width.saturating_sub(columns(&numbers) + columns(GAP)));
            if row.name.is_empty() {
                text += &(surface.styled)(row.style, numbers.trim_end());
            } else {
                text += &(surface.styled)(row.style, &numbers);
                text += GAP;
                text += &row_end(row, room, surface);
            }
            text.push('\n');
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let widths = self.columns.iter().enumerate().map(|(place, column)| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(place));
            let widest = cells.map(|cell| columns(cell)).max().unwrap_or(0);
            widest.max(columns(&column.heading))
        });
        widths.collect()
    }

    /// Which columns leave enough room for names.
    fn shown(&self, widths: &[usize], width: Option<usize>) -> Vec<bool> {
        let mut shown = vec![true; self.columns.len()];
        let Some(width) = width else {
            return shown;
        };
        let names = self.rows.iter().map(Row::columns).max().unwrap_or(0);
        let names = names.min(NAMES);
        let used = |shown: &[bool]| {
            let widths = widths.iter().zip(shown).filter(|(_, shown)| **shown);
            widths.map(|(it, _)| it + columns(GAP)).sum::<usize>()
        };
        while used(&shown) + names > width {
            let least = (0..shown.len())
                .filter(|&place| shown[place])
                .filter_map(|place| Some((self.columns[place].weight?, place)))
                .min_by_key(|&(weight, place)| (weight, shown.len() - place));
            let Some((_, place)) = least else {
                break;
            };
            shown[place] = false;
        }
        shown
    }

    /// A line about the columns that aren't shown.
    fn hidden(&self, shown: &[bool], surface: Surface<'_>) -> String {
        let columns = self.columns.iter().zip(shown);
        let hidden = columns.filter(|(_, shown)| !**shown);
        let hidden: Vec<_> = hidden.map(|(it, _)| it.heading.trim()).collect();
        let Some(width) = surface.width.filter(|_| !hidden.is_empty()) else {
            return String::new();
        };
        let names = hidden.join(", ");
        let line = format!("Too narrow for: {names} ('... | less -S' shows all)");
        wrapped(&line, width, GAP)
            .lines()
            .map(|line| (surface.styled)(Some(Style::Dim), line) + "\n")
            .collect()
    }

    fn aligned(&self, cells: &[String], widths: &[usize], shown: &[bool]) -> String {
        let mut aligned = Vec::new();
        for (place, cell) in cells.iter().enumerate().filter(|(place, _)| shown[*place]) {
            let blanks = " ".repeat(widths[place].saturating_sub(columns(cell)));
            aligned.push(match self.columns[place].is_left {
                true => format!("{cell}{blanks}"),
                false => format!("{blanks}{cell}"),
            });
        }
        aligned.join(GAP)
    }
}

/// What follows the numbers.
fn row_end(row: &Row, room: Option<usize>, surface: Surface<'_>) -> String {
    let prefix = match room {
        Some(room) => narrowed(&row.prefix, room.saturating_sub(LEAST)),
        None => row.prefix.clone(),
    };
    let room = room.map(|room| room.saturating_sub(columns(&prefix)));
    if row.is_text {
        return match room {
            Some(room) => prefix + &cut(&row.name, room.max(LEAST)),
            None => prefix + &row.name,
        };
    }
    let (name, end) = row.name().fitted(room);
    match &*end {
        "" => prefix + &name,
        end => prefix + &name + &(surface.styled)(Some(Style::Dim), end),
    }
}

/// The lines of a tree without those of the outermost branches.
fn narrowed(prefix: &str, room: usize) -> String {
    const LEFT_OUT: &str = "⋯ ";
    if columns(prefix) <= room {
        return prefix.to_string();
    }
    let steps = prefix.strip_prefix(LEFT_OUT).unwrap_or(prefix);
    let all = steps.chars().count() / STEP;
    let kept = room.saturating_sub(columns(LEFT_OUT)) / STEP;
    let steps = steps.chars().skip((all - kept.min(all)) * STEP);
    LEFT_OUT.chars().chain(steps).collect()
}

/// The lines of `text` at most so long, and parted between words; what goes on begins with `indent`.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut wrapped = String::new();
    for line in text.lines() {
        if columns(line) <= width {
            wrapped += line;
            wrapped.push('\n');
            continue;
        }
        let start = line.len() - line.trim_start().len();
        let (mut current, mut is_begun) = (line[..start].to_string(), false);
        for word in line[start..].split(' ') {
            if is_begun && columns(&current) + 1 + columns(word) > width {
                wrapped += current.trim_end();
                wrapped.push('\n');
                current = indent.to_string();
                is_begun = false;
            }
            if is_begun {
                current.push(' ');
            }
            let room = width.saturating_sub(columns(&current));
            current += &shortened(word, room.max(LEAST));
            is_begun = true;
        }
        wrapped += current.trim_end();
        wrapped.push('\n');
    }
    wrapped
}

#[cfg(test)]
mod tests;

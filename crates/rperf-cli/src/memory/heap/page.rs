//! The page of `rperf heap`. Called by `heap`.

use super::sites;
use super::steps::{class_by, joined};
use crate::left_out::{SHOWS_ALL, left_out};
use crate::report::screen::Screen;
use rperf_format::bytes_text;
use rperf_format::table::{Column, Row, Style, Table};
use rperf_heap::file::{ClassRow, HeapFile, Holder, PathRow, PathStep};
use rperf_report::numbers::{counted, grouped, milliseconds, percent};
use rperf_report::terminal_text::shown;

const NOT_WHOLE: &str = "The copy of the program was ended before it had sent all global variables: some have no \
                         name here.";

pub(super) const NESTED: &str = "What is part of another row counts there, too.";

/// The tables. `class`: the paths to its instances, and nothing else.
pub fn of(file: &HeapFile, class: Option<&str>, rows: usize, screen: Screen) -> String {
    let mut text = screen.wrapped(&(head(file) + "\n"));
    text += &sites::table(file, rows, screen);
    if let (Some(class), Some(paths)) = (class, &file.paths) {
        text += &format!("\nPaths to instances of {}\n", shown(class));
        text += &screen.table(&paths_table(paths, rows));
        text += &left_out(paths.len(), Some(rows), SHOWS_ALL);
    } else {
        text += "\nClasses\n";
        text += &screen.table(&classes_table(file, rows));
        text += &left_out(file.classes.len(), Some(rows), SHOWS_ALL);
        text += "\nBiggest holders: what would go with them\n";
        text += &screen.table(&holders_table(file, rows));
        text += &left_out(file.holders.len(), Some(rows), SHOWS_ALL);
        if file
            .holders
            .iter()
            .take(rows)
            .any(|it| !it.within.is_empty())
        {
            text += &screen.wrapped(&format!("{NESTED}\n"));
        }
        if file.unreferenced.objects > 0 {
            let sum = file.unreferenced;
            let bytes = bytes_text(sum.bytes);
            let objects = counted(sum.objects, "object");
            text += &screen.wrapped(&format!(
                "\nNothing refers to {objects} of these ({bytes}): the next collection frees them.\n"
            ));
        }
    }
    if !file.whole {
        text += &screen.wrapped(&format!("\n{NOT_WHOLE}\n"));
    }
    text
}

/// What it is of, in a line.
pub fn head(file: &HeapFile) -> String {
    let facts = &file.facts;
    format!(
        "{} {}: {} in {}, {}, Ruby {}, taken in {} ms",
        facts.pid,
        shown(&facts.program),
        bytes_text(file.total.bytes),
        counted(file.total.objects, "object"),
        counted(file.references, "reference"),
        shown(&facts.ruby),
        milliseconds(facts.elapsed_ns),
    )
}

fn classes_table(file: &HeapFile, rows: usize) -> Table {
    let columns = vec![
        Column::new("bytes"),
        Column::weighing("bytes%", 2),
        Column::new("objects"),
        Column::weighing("retained", 3),
    ];
    let mut table = Table::new(columns).with_names("class");
    for ClassRow {
        name,
        objects,
        bytes,
        retained_bytes,
        ..
    } in file.classes.iter().take(rows)
    {
        let share = percent(*bytes, file.total.bytes);
        table.push(Row {
            cells: vec![
                bytes_text(*bytes),
                format!("{share:.1}%"),
                grouped(*objects),
                bytes_text(*retained_bytes),
            ],
            style: Style::of_share(share),
            name: shown(name).into(),
            ..Row::default()
        });
    }
    table
}

fn holders_table(file: &HeapFile, rows: usize) -> Table {
    let columns = vec![
        Column::new("retained"),
        Column::weighing("retained%", 2),
        Column::weighing("objects", 1),
    ];
    let mut table = Table::new(columns).with_names("holder");
    for holder in file.holders.iter().take(rows) {
        let share = percent(holder.retained_bytes, file.total.bytes);
        table.push(Row {
            cells: vec![
                bytes_text(holder.retained_bytes),
                format!("{share:.1}%"),
                grouped(holder.objects),
            ],
            style: Style::of_share(share),
            name: text_of(holder) + &part_of(&holder.within),
            is_text: true,
            ..Row::default()
        });
    }
    table
}

/// A holder, and what it has.
pub fn text_of(holder: &Holder) -> String {
    let mut steps = vec![shown(&holder.name).into_owned()];
    if !holder.class.is_empty() {
        steps.push(many_of(holder.held, shown(&holder.class).into()));
    }
    steps.extend(holder.path.iter().map(step));
    joined(steps)
}

/// In which other row something counts, too.
pub(super) fn part_of(within: &str) -> String {
    match within {
        "" => String::new(),
        outer => format!(" (part of {})", shown(outer)),
    }
}

fn step(step: &PathStep) -> String {
    many_of(step.objects, class_by(&step.class, &step.name))
}

/// Objects of a class, with their number, if there are several.
fn many_of(objects: u64, text: String) -> String {
    match objects {
        0 | 1 => text,
        many => format!("{} {text}", grouped(many)),
    }
}

fn paths_table(paths: &[PathRow], rows: usize) -> Table {
    let columns = vec![
        Column::new("retained"),
        Column::weighing("bytes", 1),
        Column::new("objects"),
    ];
    let mut table = Table::new(columns).with_names("path");
    let all: u64 = paths
        .iter()
        .map(|it| it.retained_bytes)
        .fold(0, u64::saturating_add);
    for path in paths.iter().take(rows) {
        let mut steps = vec![shown(&path.holder).into_owned()];
        steps.extend(path.steps.iter().map(|(class, name)| class_by(class, name)));
        table.push(Row {
            cells: vec![
                bytes_text(path.retained_bytes),
                bytes_text(path.bytes),
                grouped(path.objects),
            ],
            style: Style::of_share(percent(path.retained_bytes, all)),
            name: joined(steps),
            is_text: true,
            ..Row::default()
        });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_units_and_says_what_is_missing() {
        let file = HeapFile {
            whole: false,
            classes: vec![ClassRow {
                name: "Or\u{1b}der".into(),
                objects: 1200,
                bytes: 1 << 20,
                retained_bytes: 3 << 20,
                ..ClassRow::default()
            }],
            holders: vec![Holder {
                name: "CARTS".into(),
                class: "Hash".into(),
                held: 1200,
                objects: 7,
                retained_bytes: 3 << 20,
                path: vec![PathStep {
                    class: "Item".into(),
                    name: "@items".into(),
                    objects: 5,
                    retained_bytes: 2 << 20,
                }],
                within: "REG\u{1b}ISTRY".into(),
            }],
            ..HeapFile::default()
        };
        let page = of(&file, None, 1, Screen::default());
        assert!(page.contains("1,200") && page.contains("Or der"), "{page}");
        assert!(
            page.contains("CARTS → 1,200 Hash → 5 @items Item"),
            "{page}"
        );
        assert!(page.contains(" Item (part of REG ISTRY)\n"), "{page}");
        assert!(page.contains(NESTED), "{page}");
        assert!(page.contains("was ended"), "{page}");
    }
}

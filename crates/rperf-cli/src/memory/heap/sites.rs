//! Where the objects were made that are there still, as tables. Called by `heap`.

use super::steps::{class_by, joined};
use crate::left_out::{SHOWS_ALL, left_out};
use crate::memory::elapsed;
use crate::report::screen::Screen;
use rperf_format::bytes_text;
use rperf_format::table::{Column, Row, Style, Table};
use rperf_heap::file::{CodePlace, HeapFile, SitePath, SiteRow, Sites};
use rperf_model::{CodePath, PathView};
use rperf_report::CodePaths;
use rperf_report::numbers::{counted, percent};
use rperf_report::terminal_text::shown;
use std::rc::Rc;

/// What there is without a session that follows objects.
const NONE: &str = "Where these were made isn't known: no session of this program has --measure heap \
                    (rperf help what-stays). A forked worker needs RPERF_INHERIT=fork, too.";

/// What there is of a copy that was ended before it had sent the samples.
const ENDED: &str =
    "Where these were made isn't known: the program's copy was ended before it had told that.";

/// The table.
pub fn table(file: &HeapFile, rows: usize, screen: Screen) -> String {
    let Some(sites) = &file.sites else {
        let why = if file.whole { NONE } else { ENDED };
        return screen.wrapped(&format!("\n{why}\n"));
    };
    let of_class = sites.of_class.as_ref();
    let of_class = of_class.map_or_else(String::new, |it| format!(" of {}", shown(it)));
    let mut text = format!("\nRetained by allocation site{of_class}\n");
    text += &screen.wrapped(&(head(file, sites) + "\n"));
    if sites.rows.is_empty() {
        return text + "(no samples)\n" + &screen.wrapped(&notes(sites));
    }
    text += &screen.table(&rows_of(sites, rows));
    text += &left_out(sites.rows.len(), Some(rows), SHOWS_ALL);
    text + &screen.wrapped(&notes(sites))
}

/// What the samples are, and what they stand for.
fn head(file: &HeapFile, sites: &Sites) -> String {
    let of_class = |class: &String| file.classes.iter().find(|it| it.name == *class);
    let class = sites.of_class.as_ref().and_then(of_class);
    let (all, garbage) = class.map_or((file.total.bytes, file.unreferenced), |it| {
        (it.bytes, it.unreferenced)
    });
    format!(
        "estimated from {} (1 of {} of slots) of a session that has run for {}: {} of {}, and older objects have \
         no site",
        counted(sites.samples, "sample"),
        bytes_text(sites.bytes_per_sample),
        elapsed(sites.session_ns),
        with_deviation(sites.total.bytes, sites.deviation_bytes),
        bytes_text(all.saturating_sub(garbage.bytes)),
    )
}

fn with_deviation(bytes: u64, deviation: u64) -> String {
    format!("{} +/- {}", bytes_text(bytes), bytes_text(deviation))
}

/// Lines on samples that no row has.
fn notes(sites: &Sites) -> String {
    let mut text = String::new();
    if sites.unreferenced_samples > 0 {
        let samples = counted(sites.unreferenced_samples, "sample");
        text += &format!("(without {samples} of objects that nothing refers to any more)\n");
    }
    if sites.lost_bytes > 0 {
        let bytes = bytes_text(sites.lost_bytes);
        text += &format!(
            "(without new objects with {bytes} of slots, which couldn't be followed: too many were made between \
             two safepoints)\n"
        );
    }
    text
}

fn rows_of(sites: &Sites, rows: usize) -> Table {
    let paths = paths(&[sites]);
    let columns = vec![
        Column::new("bytes"),
        Column::weighing("+/-", 3),
        Column::weighing("objects", 2),
        Column::weighing("median age", 4),
    ];
    let mut table = Table::new(columns).with_names("site, class, endpoint");
    for row in sites.rows.iter().take(rows) {
        table.push(Row {
            cells: vec![
                bytes_text(row.bytes),
                bytes_text(row.deviation_bytes),
                rperf_report::numbers::grouped(row.objects),
                age(row.median_age_ns),
            ],
            style: Style::of_share(percent(row.bytes, sites.total.bytes)),
            name: name(row, &paths),
            is_text: true,
            ..Row::default()
        });
        if let Some(path) = row.held_by.first() {
            table.push(Row {
                cells: vec![String::new(); 4],
                style: Some(Style::Dim),
                name: held_by(path),
                is_text: true,
                ..Row::default()
            });
        }
    }
    table
}

/// The site, the class, and the endpoint if there is one.
fn name(row: &SiteRow, paths: &CodePaths) -> String {
    let mut name = site(row, paths);
    for text in [&row.class, &row.endpoint] {
        if !text.is_empty() {
            name += "  ";
            name += &shown(text);
        }
    }
    name
}

fn site(row: &SiteRow, paths: &CodePaths) -> String {
    let Some(made_in) = &row.made_in else {
        return "(unknown site)".into();
    };
    let made_in = place(made_in, paths);
    match &row.called_by {
        Some(caller) => format!("{made_in} ← {}", place(caller, paths)),
        None => made_in,
    }
}

/// A method with its line, if it has a file.
fn place(place: &CodePlace, paths: &CodePaths) -> String {
    let method = shown(&place.method);
    match (CodePath::of(&place.path), place.line) {
        (CodePath::Marker(_), _) => method.into(),
        (_, 0) => format!("{method} {}", shown(&paths.short(&place.path))),
        (_, line) => format!("{method} {}:{line}", shown(&paths.short(&place.path))),
    }
}

/// How most of a site's bytes are held.
fn held_by(path: &SitePath) -> String {
    let mut steps = vec![shown(&path.holder).into_owned()];
    steps.extend(path.steps.iter().map(|(class, name)| class_by(class, name)));
    let percent = (path.part * 100.0).clamp(0.0, 100.0);
    format!("  {percent:.0}% held by {}", joined(steps))
}

/// An age, which is never none.
fn age(ns: u64) -> String {
    match ns {
        0..1_000_000_000 => "< 1 s".into(),
        _ => elapsed(ns),
    }
}

/// The sites of two files with their names, in which a path is the same in both.
pub fn named(both: [&Sites; 2]) -> [impl Iterator<Item = (String, &SiteRow)>; 2] {
    let paths = Rc::new(paths(&both));
    both.map(|sites| {
        let paths = Rc::clone(&paths);
        let rows = sites.rows.iter();
        rows.map(move |row| (name(row, &paths), row))
    })
}

/// How paths are shown.
fn paths(sites: &[&Sites]) -> CodePaths {
    let rows = sites.iter().flat_map(|it| &it.rows);
    let places = rows.flat_map(|it| [&it.made_in, &it.called_by]);
    let files = places.flatten().map(|it| it.path.as_str());
    CodePaths::of_files(PathView::default(), Vec::new(), files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_heap::file::{ClassRow, Sum};

    fn code(method: &str, path: &str, line: u32) -> Option<CodePlace> {
        Some(CodePlace {
            method: method.into(),
            path: path.into(),
            line,
        })
    }

    fn file() -> HeapFile {
        let held_by = SitePath {
            holder: "CARTS".into(),
            steps: vec![
                ("Hash".into(), String::new()),
                ("Item".into(), "@items".into()),
            ],
            part: 0.984,
        };
        let cart = SiteRow {
            made_in: code("Cart#add", "/srv/app/cart.rb", 41),
            endpoint: "POST /a".into(),
            class: "Item\u{1b}".into(),
            samples: 40,
            objects: 65_600,
            bytes: 3 << 20,
            deviation_bytes: 1 << 19,
            median_age_ns: 3 * 86_400_000_000_000 + 4 * 3_600_000_000_000,
            held_by: vec![held_by],
            ..SiteRow::default()
        };
        let rates = SiteRow {
            made_in: code("JSON.parse", "/g/gems/json-2.9.1/lib/json/common.rb", 219),
            called_by: code("Api#get", "/srv/app/lib/api.rb", 9),
            class: "String".into(),
            bytes: 1 << 10,
            ..SiteRow::default()
        };
        let internal = SiteRow {
            made_in: code("Array#map", "<internal:array>", 3),
            class: "Item".into(),
            ..SiteRow::default()
        };
        let sites = Sites {
            session_ns: 7_380_000_000_000,
            bytes_per_sample: 64 << 10,
            samples: 40,
            unreferenced_samples: 1,
            total: Sum {
                objects: 65_600,
                bytes: 3 << 20,
            },
            deviation_bytes: 1 << 19,
            rows: vec![cart, rates, internal, SiteRow::default()],
            ..Sites::default()
        };
        HeapFile {
            sites: Some(sites),
            total: Sum {
                objects: 9,
                bytes: 5 << 20,
            },
            ..HeapFile::default()
        }
    }

    #[test]
    fn a_table_has_estimates_with_their_noise_ages_sites_and_holders() {
        let page = table(&file(), 9, Screen::default());
        for text in [
            "estimated from 40 samples (1 of 64.0 KB of slots) of a session that has run for 2 h 3 min: \
             3.00 MB +/- 512.0 KB of 5.00 MB",
            "3.00 MB  512.0 KB   65,600     3 d 4 h  Cart#add cart.rb:41  Item   POST /a\n",
            "  98% held by CARTS → Hash → @items Item\n",
            "JSON.parse json-2.9.1/lib/json/common.rb:219 ← Api#get lib/api.rb:9  String\n",
            "Array#map  Item\n",
            "(unknown site)\n",
            "(without 1 sample of objects that nothing refers to any more)\n",
        ] {
            assert!(page.contains(text), "{text}\n{page}");
        }
        let mut of_class = file();
        of_class.classes.push(ClassRow {
            name: "Item".into(),
            bytes: 4 << 20,
            ..ClassRow::default()
        });
        if let Some(sites) = &mut of_class.sites {
            sites.of_class = Some("Item".into());
        }
        let of_class = table(&of_class, 9, Screen::default());
        assert!(of_class.contains("Retained by allocation site of Item\n"));
        assert!(of_class.contains("+/- 512.0 KB of 4.00 MB,"), "{of_class}");
        let few = table(&file(), 1, Screen::default());
        assert!(few.contains("(3 more, -n 0 shows them)\n"), "{few}");
    }

    #[test]
    fn without_a_session_a_line_says_how_to_get_sites() {
        let mut without = HeapFile {
            whole: true,
            ..HeapFile::default()
        };
        let page = table(&without, 9, Screen::default());
        assert_eq!(page, format!("\n{NONE}\n"));
        without.whole = false;
        let page = table(&without, 9, Screen::default());
        assert_eq!(page, format!("\n{ENDED}\n"));
        let mut empty = file();
        empty.sites = Some(Sites::default());
        let page = table(&empty, 9, Screen::default());
        assert!(page.ends_with("(no samples)\n"), "{page}");
    }
}

//! The loading of a program's files as text: each file, gem and initializer, and which file loads which.

use super::Page;
use super::prefixes::Prefixes;
use crate::report::screen::Style;
use rperf_format::boot_head;
use rperf_format::table::{Column, Row, Table};
use rperf_report::numbers::grouped;
use rperf_report::one_line::one_line;
use rperf_report::{Boot, LoadBranch, Place, Sort};

/// The least share that a branch of the tree has of all loading, in percent.
const LEAST_PERCENT: i64 = 1;

/// The loading of files.
pub fn boot(page: &Page<'_>, sort: Sort) -> String {
    let column = page.profile.schema.default_column();
    let boot = Boot::of(page.profile, column, sort);
    let mut text = page.head();
    if boot.files.is_empty() {
        return text + "No files were loaded.\n";
    }
    let total = page.value_with_percent(boot.total);
    let head = boot_head(&boot, &total, |value| page.scale().text(value));
    text += &page.screen.wrapped(&head);
    for part in [files_table, gems, initializers, tree] {
        text += &part(page, &boot);
    }
    text
}

fn files_table(page: &Page<'_>, boot: &Boot) -> String {
    let scale = page.scale();
    let columns = [
        Column::new("own"),
        Column::new("load"),
        Column::new("total"),
        Column::weighing("total%", 1),
    ];
    let mut table = Table::new(columns).with_names("file");
    for file in page.shown(&boot.files) {
        table.push(Row {
            cells: vec![
                scale.text(file.own),
                scale.text(file.load),
                scale.text(file.total),
                page.percent(file.total),
            ],
            style: Style::of_share(page.share(file.own.saturating_add(file.load))),
            name: shown(&file.place),
            detail: file
                .from
                .as_ref()
                .map_or_else(String::new, |from| format!("from {}", shown(from))),
            ..Row::default()
        });
    }
    format!("\n{}", page.rows(&table, boot.files.len()))
}

fn gems(page: &Page<'_>, boot: &Boot) -> String {
    let scale = page.scale();
    let columns = ["self", "total", "files"].map(Column::new);
    let mut table = Table::new(columns).with_names("gem");
    for gem in page.shown(&boot.gems) {
        table.push(Row {
            cells: vec![
                scale.text(gem.own),
                scale.text(gem.total),
                grouped(gem.files as i64),
            ],
            style: Style::of_share(page.share(gem.own)),
            name: one_line(&gem.name).into_owned(),
            ..Row::default()
        });
    }
    let title = "By gem (self: own and load of its files)";
    page.section(title, &table, boot.gems.len())
}

fn initializers(page: &Page<'_>, boot: &Boot) -> String {
    if boot.initializers.is_empty() {
        return String::new();
    }
    let scale = page.scale();
    let mut table = Table::new([Column::new("total"), Column::weighing("total%", 1)]);
    for it in page.shown(&boot.initializers) {
        table.push(Row {
            cells: vec![scale.text(it.total), page.percent(it.total)],
            style: Style::of_share(page.share(it.total)),
            name: one_line(&it.name).into_owned(),
            detail: shown(&it.place),
            needs_detail: true,
            ..Row::default()
        });
    }
    page.section("Initializers of Rails", &table, boot.initializers.len())
}

fn tree(page: &Page<'_>, boot: &Boot) -> String {
    let scale = page.scale();
    let least = boot
        .total
        .unsigned_abs()
        .div_ceil(100 / LEAST_PERCENT as u64);
    // What is below a branch has no more than that.
    let is_large = |branch: &&LoadBranch| branch.total.unsigned_abs() >= least;
    let branches: Vec<_> = boot.branches.iter().filter(is_large).collect();
    let mut prefixes = Prefixes::of(branches.iter().map(|branch| branch.depth));
    let columns = [Column::new("total"), Column::weighing("self", 1)];
    let mut table = Table::new(columns);
    for branch in branches {
        table.push(Row {
            cells: vec![scale.text(branch.total), scale.text(branch.own)],
            style: Style::of_share(page.share(branch.total)),
            prefix: prefixes.next(branch.depth),
            name: shown(&branch.place),
            ..Row::default()
        });
    }
    let text = format!("Which file loads which, from {LEAST_PERCENT}% on");
    page.title(&text) + &page.screen.table(&table)
}

/// A file, or a line of one.
fn shown(place: &Place) -> String {
    let path = one_line(&place.short_path);
    match place.line {
        0 => path.into_owned(),
        line => format!("{path}:{line}"),
    }
}

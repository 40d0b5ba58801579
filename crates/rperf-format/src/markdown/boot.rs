//! The loading of a program's files in Markdown: each file, gem and initializer, and which file loads which.
//! Any thread.

use super::part::Part;
use super::text::{Table, code, left_out, location};
use crate::heads::boot_head;
use rperf_report::numbers::grouped;
use rperf_report::{Boot, Place};

/// The least share that a branch of the tree has of all loading, in percent.
const LEAST_PERCENT: u64 = 1;

/// Branches of the tree that are shown.
const BRANCHES: usize = 60;
/// Levels of the tree that are shown: deeper lists are hard to read.
const DEPTH: usize = 12;

/// The loading of files.
pub(super) fn boot(part: &Part<'_>) -> String {
    let report = part.report;
    let column = report.profile.schema.default_column();
    let boot = Boot::of(report.profile, column, part.sort);
    if boot.files.is_empty() {
        return "### Loading of files\n\nNo files were loaded.\n".into();
    }
    let sections = [
        files(part, &boot),
        gems(part, &boot),
        initializers(part, &boot),
        tree(part, &boot),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|it| !it.is_empty()).collect();
    sections.join("\n")
}

fn files(part: &Part<'_>, boot: &Boot) -> String {
    let report = part.report;
    let headings = ["own", "load", "total", "total%", "file", "loaded from"];
    let mut table = Table::new(&headings, 4);
    for file in part.shown(&boot.files) {
        table.row([
            report.amount(file.own),
            report.amount(file.load),
            report.amount(file.total),
            report.percent(file.total),
            at(&file.place),
            file.from.as_ref().map_or_else(String::new, at),
        ]);
    }
    let total = format!(
        "{} ({})",
        report.amount(boot.total),
        report.percent(boot.total)
    );
    let head = boot_head(boot, &total, |value| report.amount(value));
    part.section("Loading of files", &head, &table.text(), boot.files.len())
}

fn gems(part: &Part<'_>, boot: &Boot) -> String {
    let report = part.report;
    let mut table = Table::new(&["self", "total", "files", "gem"], 3);
    for gem in part.shown(&boot.gems) {
        table.row([
            report.amount(gem.own),
            report.amount(gem.total),
            grouped(gem.files as u64),
            code(&gem.name),
        ]);
    }
    let text = "*self*: own and load of its files.";
    part.section("Loading by gem", text, &table.text(), boot.gems.len())
}

fn initializers(part: &Part<'_>, boot: &Boot) -> String {
    if boot.initializers.is_empty() {
        return String::new();
    }
    let report = part.report;
    let mut table = Table::new(&["total", "total%", "initializer", "at"], 2);
    for it in part.shown(&boot.initializers) {
        table.row([
            report.amount(it.total),
            report.percent(it.total),
            code(&it.name),
            at(&it.place),
        ]);
    }
    let all = boot.initializers.len();
    part.section("Initializers of Rails", "", &table.text(), all)
}

fn tree(part: &Part<'_>, boot: &Boot) -> String {
    let least = boot.total.unsigned_abs().div_ceil(100 / LEAST_PERCENT);
    // What is below a branch has no more than that.
    let branches = boot.branches.iter();
    let large: Vec<_> = branches
        .filter(|it| it.total.unsigned_abs() >= least)
        .collect();
    let shown = large.iter().filter(|it| it.depth < DEPTH).take(BRANCHES);
    let more = large.len() - shown.clone().count();
    let lines = shown.map(|branch| {
        let indent = "  ".repeat(branch.depth);
        let (total, own) = (
            part.report.amount(branch.total),
            part.report.amount(branch.own),
        );
        format!("{indent}- {total}, self {own}: {}\n", at(&branch.place))
    });
    let lines: String = lines.collect();
    let more = left_out(more);
    format!("### Which file loads which, from {LEAST_PERCENT}% on\n\n{lines}{more}")
}

/// A file, or a line of one.
fn at(place: &Place) -> String {
    location(&place.short_path, place.line)
}

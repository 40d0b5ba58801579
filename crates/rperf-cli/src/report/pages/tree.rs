//! The call tree as text. A line of calls without branches is not indented: it reads as
//! a stack does, and deep ones stay on the screen.

use super::Page;
use super::prefixes::Prefixes;
use rperf_format::table::{Column, Row, Table};
use rperf_report::numbers::grouped;
use rperf_report::{Direction, Tree, TreeLimits};

/// What a tree shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeOptions {
    /// Where it begins.
    pub direction: Direction,
    /// The least share of all, in percent, that a branch has.
    pub least_percent: f64,
}

/// The call tree.
pub fn tree(page: &Page<'_>, options: TreeOptions) -> String {
    let least = page.whole.unsigned_abs() as f64 * options.least_percent / 100.0;
    let limits = TreeLimits {
        least: least.ceil() as u64,
        branches: page.limit.unwrap_or(usize::MAX),
        ..TreeLimits::default()
    };
    let column = page.profile.schema.default_column();
    let tree = Tree::of(page.profile, column, options.direction, limits);
    let is_bottom_up = options.direction == Direction::BottomUp;
    let mut table = match options.direction {
        Direction::TopDown => Table::new([
            Column::new("total"),
            Column::weighing("total%", 3),
            Column::weighing("self", 2),
            Column::weighing("self%", 1),
        ]),
        Direction::BottomUp => Table::new([Column::new("self"), Column::weighing("self%", 1)]),
    };
    let scale = page.scale();
    let mut prefixes = Prefixes::of(tree.branches.iter().map(|branch| branch.depth));
    for branch in &tree.branches {
        let mut cells = vec![
            scale.text(branch.total_value),
            page.percent(branch.total_value),
        ];
        if !is_bottom_up {
            cells.push(scale.text(branch.self_value));
            cells.push(page.percent(branch.self_value));
        }
        let function = &tree.functions[branch.function];
        let mut row = Row::of(function, cells, page.share(branch.total_value));
        row.prefix = prefixes.next(branch.depth);
        if branch.left_out > 0 {
            row.note = format!("  [+{} smaller]", grouped(branch.left_out as i64));
        }
        table.push(row);
    }
    let mut text = page.head_about_callers();
    let percent = options.least_percent;
    let what = if is_bottom_up { "callers" } else { "callees" };
    let title = format!("Call tree with {what} below, branches of at least {percent}%\n\n");
    text += &page.screen.wrapped(&title);
    text += &page.screen.table(&table);
    if tree.left_out > 0 {
        let count = grouped(tree.left_out as i64);
        text += &format!("[+{count} smaller]\n");
    }
    let is_cut = tree.left_out > 0 || tree.branches.iter().any(|branch| branch.left_out > 0);
    if is_cut && page.limit == Some(tree.branches.len()) {
        let count = grouped(tree.branches.len() as i64);
        text += &format!("\n(The {count} largest branches; -n shows more)\n");
    }
    text
}

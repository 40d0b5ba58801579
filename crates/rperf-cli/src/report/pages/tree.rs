//! The call tree as text. A line of calls without branches is not indented: it reads as
//! a stack does, and deep ones stay on the screen.

use super::Page;
use crate::report::table::{Row, Table};
use rperf_report::numbers::grouped;
use rperf_report::{Branch, Direction, Tree, TreeLimits};

/// What a tree shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeOptions {
    /// Where it begins.
    pub direction: Direction,
    /// The least share of all, in percent, that a branch has.
    pub least_percent: f64,
}

/// Forks above a branch that are drawn; of further ones, the outermost are not.
const MOST_FORKS: usize = 12;

/// The call tree.
pub fn tree(page: &Page<'_>, options: TreeOptions) -> String {
    let least = page.whole.unsigned_abs() as f64 * options.least_percent / 100.0;
    let limits = TreeLimits {
        least: least.ceil() as u64,
        ..TreeLimits::default()
    };
    let column = page.profile.schema.default_column();
    let tree = Tree::of(page.profile, column, options.direction, limits);
    let is_bottom_up = options.direction == Direction::BottomUp;
    let mut table = match options.direction {
        Direction::TopDown => Table::new(&["total", "total%", "self", "self%"]),
        Direction::BottomUp => Table::new(&["self", "self%"]),
    };
    let scale = page.scale();
    let mut prefixes = Prefixes::of(&tree.branches);
    let all = tree.branches.len();
    for branch in tree.branches.iter().take(page.limit.unwrap_or(all)) {
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
        row.prefix = prefixes.next(branch);
        if branch.left_out > 0 {
            row.detail += &format!("  [+{} smaller]", grouped(branch.left_out as i64));
        }
        table.push(row);
    }
    let mut text = page.head();
    let percent = options.least_percent;
    let what = if is_bottom_up { "callers" } else { "callees" };
    text += &format!("Call tree with {what} below, branches of at least {percent}%\n\n");
    text += &table.render(&page.screen);
    if tree.left_out > 0 {
        let count = grouped(tree.left_out as i64);
        text += &format!("[+{count} smaller]\n");
    }
    text + &super::more(page, all, "branches")
}

/// The lines in front of the names.
struct Prefixes {
    /// For each branch how many are directly below it, by its place; last the roots.
    siblings: Vec<usize>,
    place: usize,
    /// The branches above the next one.
    above: Vec<Above>,
}

#[derive(Clone, Copy)]
struct Above {
    /// How many branches below it are still to come.
    left: usize,
    /// Whether it has several, and so lines of its own.
    is_fork: bool,
}

impl Prefixes {
    fn of(branches: &[Branch]) -> Self {
        let mut siblings = vec![0; branches.len() + 1];
        let mut above: Vec<usize> = Vec::new();
        for (place, branch) in branches.iter().enumerate() {
            above.truncate(branch.depth);
            let parent = above.last().copied().unwrap_or(branches.len());
            siblings[parent] += 1;
            above.push(place);
        }
        Self {
            siblings,
            place: 0,
            above: Vec::new(),
        }
    }

    fn next(&mut self, branch: &Branch) -> String {
        self.above.truncate(branch.depth);
        // Roots stand side by side.
        if let Some(parent) = self.above.last_mut() {
            parent.left -= 1;
        }
        let forks: Vec<_> = self.above.iter().filter(|it| it.is_fork).collect();
        let hidden = forks.len().saturating_sub(MOST_FORKS);
        let mut prefix = if hidden > 0 { "⋯ " } else { "" }.to_string();
        let is_child_of_fork = self.above.last().is_some_and(|parent| parent.is_fork);
        for (place, fork) in forks.iter().enumerate().skip(hidden) {
            let is_own = place + 1 == forks.len() && is_child_of_fork;
            prefix += match (is_own, fork.left > 0) {
                (true, true) => "├─ ",
                (true, false) => "└─ ",
                (false, true) => "│  ",
                (false, false) => "   ",
            };
        }
        let below = self.siblings[self.place];
        self.place += 1;
        self.above.push(Above {
            left: below,
            is_fork: below > 1,
        });
        prefix
    }
}

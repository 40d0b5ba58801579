//! The call tree as text. A line of calls without branches is not indented: it reads as
//! a stack does, and deep ones stay on the screen.

use super::Page;
use rperf_format::table::{Column, Row, Table};
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
    let mut prefixes = Prefixes::of(&tree.branches);
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
        row.prefix = prefixes.next(branch);
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

/// The lines in front of the names.
struct Prefixes {
    /// For each branch how many are directly below it, by its place; last the roots.
    siblings: Vec<usize>,
    place: usize,
    /// The forks above the next branch: those with several below them, which have lines
    /// of their own.
    forks: Vec<Fork>,
}

struct Fork {
    depth: usize,
    /// How many branches below it are still to come.
    left: usize,
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
            forks: Vec::new(),
        }
    }

    fn next(&mut self, branch: &Branch) -> String {
        while self
            .forks
            .last()
            .is_some_and(|fork| fork.depth >= branch.depth)
        {
            self.forks.pop();
        }
        let is_child = |fork: &Fork| fork.depth + 1 == branch.depth;
        if let Some(parent) = self.forks.last_mut().filter(|fork| is_child(fork)) {
            parent.left -= 1;
        }
        let hidden = self.forks.len().saturating_sub(MOST_FORKS);
        let mut prefix = if hidden > 0 { "⋯ " } else { "" }.to_string();
        for fork in &self.forks[hidden..] {
            prefix += match (is_child(fork), fork.left > 0) {
                (true, true) => "├─ ",
                (true, false) => "└─ ",
                (false, true) => "│  ",
                (false, false) => "   ",
            };
        }
        let left = self.siblings[self.place];
        self.place += 1;
        if left > 1 {
            let depth = branch.depth;
            self.forks.push(Fork { depth, left });
        }
        prefix
    }
}

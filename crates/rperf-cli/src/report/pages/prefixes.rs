//! The lines that show which branch of a tree is below which. Used by the pages with trees.

/// Forks above a branch that are drawn; of further ones, the outermost are not.
const MOST_FORKS: usize = 12;

/// The lines in front of the names.
pub struct Prefixes {
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
    /// The lines for branches that are so deep, each followed by what is below it.
    pub fn of(depths: impl ExactSizeIterator<Item = usize>) -> Self {
        let roots = depths.len();
        let mut siblings = vec![0; roots + 1];
        let mut above: Vec<usize> = Vec::new();
        for (place, depth) in depths.enumerate() {
            above.truncate(depth);
            let parent = above.last().copied().unwrap_or(roots);
            siblings[parent] += 1;
            above.push(place);
        }
        Self {
            siblings,
            place: 0,
            forks: Vec::new(),
        }
    }

    /// The lines in front of the next branch, which is so deep.
    pub fn next(&mut self, depth: usize) -> String {
        while self.forks.last().is_some_and(|fork| fork.depth >= depth) {
            self.forks.pop();
        }
        let is_child = |fork: &Fork| fork.depth + 1 == depth;
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
            self.forks.push(Fork { depth, left });
        }
        prefix
    }
}

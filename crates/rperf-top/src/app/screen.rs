//! The screens, their columns, and by what each can be sorted.

use crate::line::Sort;

/// A screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Screen {
    /// Methods.
    #[default]
    Methods,
    /// The call tree.
    Tree,
    /// Threads.
    Threads,
    /// Labels.
    Labels,
    /// What memory is of.
    Memory,
}

impl Screen {
    /// All of them, in the order of their keys.
    pub const ALL: [Screen; 5] = [
        Screen::Methods,
        Screen::Tree,
        Screen::Threads,
        Screen::Labels,
        Screen::Memory,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Methods => "Methods",
            Screen::Tree => "Tree",
            Screen::Threads => "Threads",
            Screen::Labels => "Labels",
            Screen::Memory => "Memory",
        }
    }

    /// The columns of its lines, the most important ones first; that of blame only if it is known.
    pub fn columns(self, has_blame: bool) -> impl Iterator<Item = Column> {
        use Column::{Share, Time};
        use Sort::{Blame, Blocked, Gc, Own, Total, Wait};
        let all: &[Column] = match self {
            Screen::Methods => &[
                Time(Own),
                Share(Own),
                Share(Total),
                Time(Wait),
                Time(Blocked),
                Time(Gc),
                Time(Blame),
            ],
            Screen::Tree => &[
                Time(Total),
                Share(Total),
                Share(Own),
                Time(Wait),
                Time(Blocked),
                Time(Gc),
                Time(Blame),
            ],
            Screen::Threads | Screen::Labels => &[
                Time(Own),
                Time(Wait),
                Time(Blocked),
                Time(Gc),
                Time(Blame),
                Share(Own),
            ],
            // Its rows have other columns, and an order of their own.
            Screen::Memory => &[Time(Own)],
        };
        let all = all.iter().copied();
        all.filter(move |it| has_blame || it.sort() != Blame)
    }

    /// The values that it can be sorted by: those of its columns.
    pub fn sorts(self, has_blame: bool) -> Vec<Sort> {
        let mut sorts = Vec::new();
        for sort in self.columns(has_blame).map(Column::sort) {
            if !sorts.contains(&sort) {
                sorts.push(sort);
            }
        }
        sorts
    }
}

/// A column of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Times.
    Time(Sort),
    /// Their shares of the whole.
    Share(Sort),
}

impl Column {
    /// The value that it is of.
    pub fn sort(self) -> Sort {
        match self {
            Column::Time(sort) | Column::Share(sort) => sort,
        }
    }
}

impl Sort {
    /// The heading of its columns.
    pub fn heading(self, screen: Screen) -> &'static str {
        match (self, screen) {
            (Sort::Own, Screen::Threads | Screen::Labels) => "run",
            (Sort::Own, _) => "self",
            (Sort::Total, _) => "total",
            (Sort::Wait, _) => "wait",
            (Sort::Blocked, _) => "blocked",
            (Sort::Gc, _) => "GC",
            (Sort::Blame, _) => "blame",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_are_sorted_by_their_columns() {
        use Sort::{Blame, Blocked, Gc, Own, Total, Wait};
        for (screen, sorts) in [
            (Screen::Methods, &[Own, Total, Wait, Blocked, Gc, Blame][..]),
            (Screen::Tree, &[Total, Own, Wait, Blocked, Gc, Blame]),
            (Screen::Threads, &[Own, Wait, Blocked, Gc, Blame]),
        ] {
            assert_eq!(screen.sorts(true), sorts);
            assert_eq!(screen.sorts(false), sorts[..sorts.len() - 1]);
        }
    }
}

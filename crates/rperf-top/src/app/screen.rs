//! The screens, and by what each can be sorted.

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

    /// By what it can be sorted; blame comes last, if it is known.
    pub fn sorts(self, has_blame: bool) -> &'static [Sort] {
        use Sort::{Blame, Blocked, Gc, Own, Total, Wait};
        let all: &[Sort] = match self {
            Screen::Methods => &[Own, Total, Wait, Blocked, Gc, Blame],
            Screen::Tree => &[Total, Own, Wait, Blocked, Gc, Blame],
            Screen::Threads | Screen::Labels => &[Own, Wait, Blocked, Gc, Blame],
            // Its rows have an order of their own.
            Screen::Memory => &[Own, Blame],
        };
        &all[..all.len() - usize::from(!has_blame)]
    }
}

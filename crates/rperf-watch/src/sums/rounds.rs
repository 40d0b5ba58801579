//! The rounds in which all programs are asked: the figures of the last ones, and whether there is
//! something new to be seen.

use std::collections::VecDeque;

/// Intervals whose figures are kept.
pub const HISTORY: usize = 120;

/// The figures of an interval, for all programs together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// The part of the time in which a thread of a program ran or collected garbage, on average.
    pub busy: f64,
    /// Threads that waited for the GVL.
    pub waiting: f64,
    /// The part of the time in which garbage was collected.
    pub gc: f64,
    /// Threads that were blocked, but for those that are idle and not shown.
    pub blocked: f64,
    /// Threads that are idle and not shown.
    pub hidden: f64,
    /// The part of the time that sampling took.
    pub overhead: f64,
}

/// What the rounds have left: nothing of it is of single programs, so it stays when all that they
/// have sent comes anew.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    /// The last intervals, the newest last.
    pub history: VecDeque<Figures>,
    /// Whether there is a mark.
    pub has_mark: bool,
    /// Changes with each interval.
    pub version: u64,
    /// Changes with each page that brings something.
    pub generation: u64,
}

impl Rounds {
    /// The figures of the last interval.
    pub(super) fn last(&self) -> Figures {
        self.history.back().copied().unwrap_or_default()
    }

    /// A round with these figures is over.
    pub(super) fn end(&mut self, figures: Figures) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(figures);
        self.renew();
    }

    /// The picture may be renewed.
    pub(super) fn renew(&mut self) {
        self.version += 1;
    }

    /// A page has brought something.
    pub(super) fn note_page(&mut self) {
        self.generation += 1;
    }

    /// All programs have a mark from now on.
    pub(super) fn mark(&mut self) {
        self.has_mark = true;
        self.renew();
    }
}

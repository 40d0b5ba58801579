//! What is asked of the sums, on whichever screen.

use crate::line::{Question, Sort};
use rperf_watch::sums::{Label, Scope};

/// What the user asks for. Other screens are asked for the same, and lines are answers to it: whoever
/// changes it renews them.
#[derive(Debug, Default)]
pub struct Asked {
    /// The span of time.
    pub scope: Scope,
    /// The label that is looked at.
    pub filter: Option<Label>,
    /// The names that are looked for.
    pub search: String,
    /// With a heading for each process.
    pub by_process: bool,
}

impl Asked {
    /// The question to the sums, where answers are sorted in this way.
    pub(crate) fn question(&self, sort: Sort) -> Question<'_> {
        Question {
            scope: self.scope,
            filter: self.filter.as_ref(),
            search: &self.search,
            sort,
            by_process: self.by_process,
        }
    }

    /// The span of time that comes next. In a saved profile there is no mark.
    pub(crate) fn scope_by_next(&mut self, is_saved: bool) {
        self.scope = match self.scope {
            Scope::Rate => Scope::Total,
            Scope::Total if is_saved => Scope::Rate,
            Scope::Total => Scope::SinceMark,
            Scope::SinceMark => Scope::Rate,
        };
    }

    /// Lets go of what has been looked for, or else of the label.
    pub(crate) fn forget(&mut self) {
        if self.search.is_empty() {
            self.filter = None;
        }
        self.search.clear();
    }
}

//! The texts of methods and labels, fit for a terminal.

use rperf_model::{StringId, Strings};
use rperf_report::terminal_text::shown;
use std::sync::Arc;

/// Texts as people see them, by the numbers of the strings that they are made of: one copy of each,
/// however many have it.
#[derive(Debug, Clone, Default)]
pub struct ShownTexts {
    known: Vec<Option<Arc<str>>>,
}

impl ShownTexts {
    /// The text of a string.
    pub fn of(&mut self, strings: &Strings, id: StringId) -> Arc<str> {
        let place = id.0 as usize;
        if self.known.len() <= place {
            self.known.resize(place + 1, None);
        }
        let text = || shown(strings.get(id)).into();
        Arc::clone(self.known[place].get_or_insert_with(text))
    }
}

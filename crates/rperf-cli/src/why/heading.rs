//! The heading of a part of a page.

use crate::report::screen::{Screen, Style};

/// The heading, with a blank line before it.
pub fn heading(screen: Screen, text: &str) -> String {
    format!("\n{}\n", screen.styled(Some(Style::Bold), text))
}

//! Texts: of paths, of names, of values with their units, and patterns for them. Any thread.

pub(crate) mod code_paths;
pub mod one_line;
pub(crate) mod pattern;
pub mod terminal_text;
pub(crate) mod units;

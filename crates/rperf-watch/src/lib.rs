//! Watching running programs, at their user: finding their ports, asking them, and the sums of the
//! pages that they send. Nothing here draws, serves or writes text for people.

pub mod client;
pub mod find;
pub mod sums;

//! What stays in memory, what grows, and what collections cost. Any thread.

pub(crate) mod gc_times;
pub mod growth;
pub mod in_use;

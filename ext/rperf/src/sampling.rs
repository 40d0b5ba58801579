//! The begin and the end of sessions and sections, and what they have collected.

pub mod objects_made;
pub mod section;
pub mod snapshot;
pub mod start;
pub mod step;
mod taken_profile;

pub use taken_profile::Finish;

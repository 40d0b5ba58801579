//! Sessions of several processes: what they tell each other, where they leave their profiles, and
//! how these become one.
//!
//! The command (`rperf-cli`) and the extension use it, on whatever thread they are. Nothing here
//! knows Ruby, and nothing starts a thread.

pub mod figures;
pub mod merge;
pub mod os;
pub mod output;
pub mod process_id;
pub mod session_folder;
pub mod status;

//! Sessions of several processes: what can be set, what processes tell each other, where they leave
//! their profiles, and how these become one.
//!
//! The command (`rperf-cli`) and the extension use it, on whatever thread they are. Nothing here
//! knows Ruby, and nothing starts a thread.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod control_groups;
pub mod directory;
pub mod environment;
pub mod event;
pub mod exec_target;
pub mod input;
pub mod kernel_text;
mod library_link;
pub mod merge;
pub mod os;
pub mod output;
pub mod page;
pub mod peer;
pub mod place;
pub mod privileges;
pub mod process_id;
pub mod process_memory;
pub mod process_stats;
pub mod program_roots;
pub mod settings;
pub mod status;
mod trusted_path;

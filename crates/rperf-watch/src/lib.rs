//! Watching running programs, at their user: finding their ports, asking them, what they are doing,
//! and the sums and profiles that they send. Nothing here draws, serves or writes text for people.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod client;
pub mod condition;
pub mod connection;
pub mod failure;
pub mod find;
pub mod heap;
pub mod kept;
pub mod leak;
pub mod memory;
pub mod patience;
pub mod process;
pub mod program;
pub mod programs;
pub mod pull;
#[cfg(test)]
mod scripted;
pub mod several;
pub mod sums;
pub mod take;
pub mod users;

//! What goes over the port of a running program, for both ends: requests and the heads of HTTP,
//! messages, refusals, pages of changes, graphs of objects, and their limits. Nothing here opens a socket.
//!
//! A message is one type for its writer and its reader. Readers skip what they don't know, and take
//! a default for what older programs don't send.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod access;
pub mod ask;
pub mod delta;
pub mod heap;
pub mod hello;
pub mod json;
pub mod limits;
pub mod measure;
pub mod memory;
pub mod message;
pub mod refusal;
pub mod stacks;
mod text;

/// The version of the protocol, which begins each path.
pub const PROTOCOL: u32 = 1;

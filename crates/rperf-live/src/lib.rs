//! Asking a running program: its *port*, and the client that finds ports and asks. Nothing here
//! links Ruby or samples; `port/wake.rs` calls the function with which Ruby handles signals, by its
//! address.
//!
//! The extension opens ports, in programs that want one; the command is the client. A port is a
//! Unix socket in the user's private directory, served by a native thread of its own, which sleeps in
//! poll(2) without a timeout while nobody is connected.

pub mod access;
pub mod client;
pub mod find;
pub mod mirror;
mod peer;
mod place;
pub mod port;

pub use peer::Peer;
pub use place::{Place, PlaceError, TokenFile};

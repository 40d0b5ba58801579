//! What goes over the port of a running program, for both ends: requests and the heads of HTTP,
//! messages, refusals, pages of changes, and their limits. Nothing here opens a socket.

pub mod delta;
pub mod hello;
pub mod message;
mod text;

pub use message::PROTOCOL;
pub use text::shown;

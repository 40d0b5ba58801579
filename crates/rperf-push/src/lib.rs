//! Sending profiles to a server of Pyroscope or a collector of OpenTelemetry: the URL and headers,
//! the body, what follows from an answer, and a queue with its retries. For `rperf push`, and for
//! programs that push their own profiles.
//!
//! Nothing here sends, waits or reads a clock: callers do, and hand in the time. Any thread.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod answer;
mod destination;
mod sender;

pub use answer::{Answer, Verdict};
pub use destination::{AUTHORIZATION, Destination, InvalidDestination, Kind, Names, Wish};
pub use sender::{Body, Counts, Next, Owner, Sender, Step};

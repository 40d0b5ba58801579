//! pprof's profile.proto, gzip'd: written for `go tool pprof` and everything else
//! that reads it, and read back, be it ours or another tool's. Any thread.
//!
//! Beyond the plain facts we write, so that reading gives the same profile:
//! - states are leaf frames (`[GVL wait]`) for tools that know no labels, and labels
//!   (`%GVL`) for filters;
//! - the thread is the numeric label `thread_seq`, and `thread` if it has a name;
//! - the default type (as the mode), frequency and counters are in a comment of the kind
//!   that pprof hides.
//!
//! All sample types of a file are columns of the profile, in the file's order and units,
//! and are written as they are: also those of heap profiles and the like.
//!
//! Raw samples are not written: pprof has sums only.

mod collections;
mod labels;
mod latencies;
mod message;
mod meta;
mod ops;
mod proto;
pub mod pyroscope;
mod read;
mod requests;
mod stacks;
mod suite;
mod texts;
mod time_lines;
mod value_types;
mod wire;
mod write;

pub use read::{read, read_own};
pub use write::write;

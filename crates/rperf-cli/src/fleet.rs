//! The programs of a machine taken together, for collectors of profiles: `rperf serve` and
//! `rperf push`. Called by `run`, on the main thread.

mod bound;
mod poster;
mod profile;
mod programs;
pub mod push;
mod reply;
pub mod serve;

//! The programs of a machine taken together, for collectors of profiles: `rperf serve`. Called by
//! `run`, on Ruby's main thread.

mod profile;
mod programs;
mod reply;
pub mod serve;

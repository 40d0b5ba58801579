//! The commands that ask running programs: `rperf ps`. Called by `run`, on Ruby's main thread.

pub mod ps;

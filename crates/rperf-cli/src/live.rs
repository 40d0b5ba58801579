//! The commands that ask running programs: `rperf ps`, `stacks`, `attach` and `snapshot`. Called by
//! `run`, on Ruby's main thread.

pub mod attach;
mod process;
pub mod ps;
mod recording;
pub mod snapshot;
pub mod stacks;

//! The commands that ask running programs: `rperf ps` and `rperf stacks`; and the way to their
//! ports. Called by `run` and `attach`, on Ruby's main thread.

pub mod process;
pub mod ps;
pub mod stacks;

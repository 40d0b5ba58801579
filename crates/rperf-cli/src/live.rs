//! The commands that ask running programs: `rperf ps` and `rperf stacks`. Called by `run`, on Ruby's main thread.

mod process;
pub mod ps;
pub mod stacks;

//! The commands that ask running programs: `rperf ps`, `rperf stacks` and `rperf top`. Called by `run`, on Ruby's main thread.

mod process;
pub mod ps;
pub mod stacks;
pub mod top;

//! The commands that ask running programs: `rperf ps`, `rperf stacks` and `rperf top`; and the
//! way to their ports. Called by `run` and `attach`, on the main thread.

pub mod choose;
pub mod ps;
pub mod stacks;
mod thread_state;
pub mod top;
pub mod users;
pub(crate) mod viewer;
pub mod words;

//! What is kept for each Ruby thread while a session runs. The bridge's hooks fill it in, with
//! the GVL or without; [`RunningSession`](crate::RunningSession) owns it.

pub mod native;
mod new_list;
mod state;
mod thread_end;

pub use new_list::NewList;
pub use state::{GvlPart, ThreadState, UNKNOWN_TURN, last_serial};
pub use thread_end::ThreadEnd;

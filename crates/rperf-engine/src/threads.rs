//! What is kept for each Ruby thread while a session runs. The bridge's hooks fill it in, with
//! the GVL or without; [`RunningSession`](crate::RunningSession) owns it.

mod names;
pub mod native;
mod new_list;
mod others_ready;
mod state;
mod thread_end;

pub use names::{NotedName, ThreadNames, VmName};
pub use new_list::NewList;
pub use others_ready::OthersReady;
pub use state::{GvlPart, ThreadState, UNKNOWN_TURN, last_serial};
pub use thread_end::ThreadEnd;

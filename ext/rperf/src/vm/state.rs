//! What everything else stands on: the running session and the way to it, threads and their
//! register, frames and label sets as the VM has them.

pub mod data_type;
pub mod frames;
pub mod label_cache;
pub mod label_set;
pub mod live_threads;
pub mod other_gvl;
pub mod ractor;
pub mod roots;
pub mod safepoint;
pub mod session;
pub mod threads;
pub mod trace;

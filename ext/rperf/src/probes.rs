//! Sampling: its sessions, hooks and the sampling callback. It turns the VM's events into calls
//! of the engine and keeps policy out.
//!
//! Which thread may touch what:
//! - What asks for a [`Gvl`](rperf_vm::Gvl): only a thread that holds the main Ractor's GVL.
//!   A token is made at the head of each callback and method. Code that can run Ruby code takes
//!   it as `&mut`, so that nothing of the session is kept meanwhile.
//! - Hooks of other Ractors' threads have those Ractors' GVLs
//!   ([`OtherGvl`](crate::ruby::other_gvl::OtherGvl)): they touch their thread's recorder, no more.
//! - READY and EXITED run without the GVL and touch atomics only.
//! - Hooks make no Ruby object, raise nothing, and take no lock that can wait.

pub mod sampling;
pub mod tracing;

use crate::ruby::safepoint;
use sampling::{ended_ractors, sampling_job};

/// Makes what is made once per process. On the main thread.
pub fn init() {
    safepoint::register(sampling_job::on_safepoint);
    ended_ractors::init();
}

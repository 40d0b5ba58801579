//! What the VM and the system call: hooks, the sampling callback, the signal handler's part, and
//! fork's handlers.

pub mod event_hook;
pub mod fiber;
pub mod fork;
pub mod gc;
pub mod other_ractor;
pub mod sampling_job;
pub mod thread;
pub mod tick;
pub mod time_slice;
pub mod trace;

/// Removes all hooks of a session; afterwards none of them runs. With the GVL.
pub fn remove_all() {
    thread::remove();
    gc::remove();
    time_slice::HOOK.remove();
    fiber::remove();
}

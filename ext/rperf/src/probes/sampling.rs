//! What the VM calls: hooks and the sampling callback.

pub mod ended_ractors;
pub mod fiber;
pub mod gc;
pub mod objects;
pub mod other_ractor;
pub mod sampling_job;
pub mod thread;
pub mod time_slice;

use crate::ruby::thread_hook;

/// Removes all hooks of a session; afterwards none of them runs. With the GVL.
pub fn remove_all() {
    thread_hook::remove();
    gc::HOOK.remove();
    time_slice::HOOK.remove();
    fiber::remove();
    objects::remove();
}

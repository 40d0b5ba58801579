//! The VM's next safepoint: where the sampling callback runs, and the one that answers the port.
//! Registered once per process, and asked for by the timer's signal handler, the handler of ticks,
//! hooks and the port's thread.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

/// The sampling callback.
static SAMPLING: Job = Job::new();

/// A callback that the VM runs at the next safepoint, when it is asked to.
pub struct Job(OnceLock<rb_sys::rb_postponed_job_handle_t>);

impl Job {
    /// A callback that isn't registered yet.
    pub const fn new() -> Self {
        Job(OnceLock::new())
    }

    /// Registers the callback. With the GVL.
    pub fn register(&self, callback: unsafe extern "C" fn(*mut c_void)) {
        self.0.get_or_init(|| {
            // SAFETY: the callback is valid for ever and takes no data.
            unsafe { rb_sys::rb_postponed_job_preregister(0, Some(callback), ptr::null_mut()) }
        });
    }

    /// Asks for the callback. Async-signal-safe; from any native thread.
    pub fn trigger(&self) {
        if let Some(&job) = self.0.get() {
            // SAFETY: the handle is valid; the call only sets atomics of the VM.
            unsafe { rb_sys::rb_postponed_job_trigger(job) };
        }
    }
}

/// Registers the sampling callback. With the GVL.
pub fn register(callback: unsafe extern "C" fn(*mut c_void)) {
    SAMPLING.register(callback);
}

/// Asks for the sampling callback. Async-signal-safe; from any native thread.
pub fn trigger() {
    SAMPLING.trigger();
}

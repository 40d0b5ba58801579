//! The VM's next safepoint: where the sampling callback runs. Registered once per process, and
//! asked for by the timer's signal handler, the handler of ticks and hooks.

use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

/// Handle of the sampling callback.
static JOB: OnceLock<rb_sys::rb_postponed_job_handle_t> = OnceLock::new();

/// Registers the callback. With the GVL.
pub fn register(callback: unsafe extern "C" fn(*mut c_void)) {
    JOB.get_or_init(|| {
        // SAFETY: the callback is valid for ever and takes no data.
        unsafe { rb_sys::rb_postponed_job_preregister(0, Some(callback), ptr::null_mut()) }
    });
}

/// Asks for the callback. Async-signal-safe; from any native thread.
pub fn trigger() {
    if let Some(&job) = JOB.get() {
        // SAFETY: the handle is valid; the call only sets atomics of the VM.
        unsafe { rb_sys::rb_postponed_job_trigger(job) };
    }
}

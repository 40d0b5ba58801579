//! Work that needs no Ruby, done while other Ruby threads run. Called on Ruby threads that
//! hold the GVL; the work itself runs on the same thread, without it.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::thread;

/// What the VM calls, and what came of it.
struct Job<F, T> {
    work: Option<F>,
    outcome: Option<thread::Result<T>>,
}

/// What `work` returns. It runs to its end, but hurries if it writes for a slow reader: interrupts wait, and are handled by the caller's
/// next safepoint, so nothing is raised here. `Send` keeps Ruby's values out of it. If an
/// interrupt is pending, the GVL is kept.
pub fn without_gvl<T: Send, F: FnOnce() -> T + Send>(work: F) -> T {
    try_without_gvl(work).unwrap_or_else(|work| work())
}

/// What `work` returns, as [`without_gvl`] runs it; `work` itself, undone, if an interrupt is
/// pending: even that other threads have waited for the GVL for a while is one.
pub fn try_without_gvl<T: Send, F: FnOnce() -> T + Send>(work: F) -> Result<T, F> {
    let mut job = Job {
        work: Some(work),
        outcome: None,
    };
    // SAFETY: `run` gets the job that it is made for, which lives until the call returns. This
    // thread holds the GVL. The VM calls `run` once or, if an interrupt is pending, not at all;
    // in this variant it raises nothing. `hurry` may be called from any thread meanwhile.
    unsafe {
        rb_sys::rb_thread_call_without_gvl2(
            Some(run::<F, T>),
            (&raw mut job).cast(),
            Some(hurry),
            ptr::null_mut(),
        );
    }
    match (job.work, job.outcome) {
        (_, Some(Ok(value))) => Ok(value),
        (_, Some(Err(panic))) => resume_unwind(panic),
        (Some(work), None) => Err(work),
        (None, None) => unreachable!("work that was begun has an outcome"),
    }
}

/// The VM calls it when an interrupt comes meanwhile. All work ends by itself, but what a slow reader gets.
unsafe extern "C" fn hurry(_: *mut c_void) {
    rperf_session::output::hurry();
}

/// A panic must not unwind through the VM: it goes on when we are back.
unsafe extern "C" fn run<F: FnOnce() -> T, T>(job: *mut c_void) -> *mut c_void {
    // SAFETY: `without_gvl` passes its own job, which nobody else uses meanwhile.
    let job = unsafe { &mut *job.cast::<Job<F, T>>() };
    if let Some(work) = job.work.take() {
        job.outcome = Some(catch_unwind(AssertUnwindSafe(work)));
    }
    ptr::null_mut()
}

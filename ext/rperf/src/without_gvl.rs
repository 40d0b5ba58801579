//! Work that needs no Ruby, done while other Ruby threads run. Called on Ruby threads that
//! hold the GVL; the work itself runs on the same thread, without it.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// What the VM calls, and what came of it.
struct Job<F, T> {
    work: Option<F>,
    outcome: Option<thread::Result<T>>,
}

/// What `work` returns. It runs to its end: interrupts wait, and are handled by the caller's
/// next safepoint, so nothing is raised here. `Send` keeps Ruby's values out of it. If an
/// interrupt is pending, the GVL is kept.
pub fn without_gvl<T: Send, F: FnOnce() -> T + Send>(work: F) -> T {
    try_without_gvl(work).unwrap_or_else(|work| work())
}

/// What `work` returns, as [`without_gvl`] runs it; `work` itself, undone, if an interrupt is
/// pending: even that other threads have waited for the GVL for a while is one.
pub fn try_without_gvl<T: Send, F: FnOnce() -> T + Send>(work: F) -> Result<T, F> {
    called(work, None, ptr::null_mut())
}

/// What `work` returns, as [`try_without_gvl`] does; the flag becomes true as soon as an interrupt comes.
pub fn try_telling<T: Send, F: FnOnce() -> T + Send>(
    flag: &Arc<AtomicBool>,
    work: F,
) -> Result<T, F> {
    called(work, Some(tell), Arc::as_ptr(flag).cast_mut().cast())
}

/// Calls `work` without the GVL, and `unblock` with its argument if an interrupt comes meanwhile.
fn called<T: Send, F: FnOnce() -> T + Send>(
    work: F,
    unblock: Option<unsafe extern "C" fn(*mut c_void)>,
    argument: *mut c_void,
) -> Result<T, F> {
    let mut job = Job {
        work: Some(work),
        outcome: None,
    };
    // SAFETY: `run` gets the job that it is made for, which lives until the call returns. This
    // thread holds the GVL. The VM calls `run` once or, if an interrupt is pending, not at all;
    // in this variant it raises nothing. The callers' `unblock` takes their argument, from any thread,
    // and is not called any more when the call has returned.
    unsafe {
        rb_sys::rb_thread_call_without_gvl2(
            Some(run::<F, T>),
            (&raw mut job).cast(),
            unblock,
            argument,
        );
    }
    match (job.work, job.outcome) {
        (_, Some(Ok(value))) => Ok(value),
        (_, Some(Err(panic))) => resume_unwind(panic),
        (Some(work), None) => Err(work),
        (None, None) => unreachable!("work that was begun has an outcome"),
    }
}

/// What the VM calls when an interrupt comes: it notes that, and nothing else.
unsafe extern "C" fn tell(flag: *mut c_void) {
    // SAFETY: `try_telling` passes its flag, which its caller holds until the call has returned.
    unsafe { &*flag.cast::<AtomicBool>() }.store(true, Relaxed);
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

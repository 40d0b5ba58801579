//! Long work that needs nothing of Ruby, done while other threads run Ruby code. Called on
//! Ruby threads that hold the GVL; the work runs on the calling thread.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

/// What `work` returns. It runs to its end: an interrupt (Thread#raise, a signal) that comes
/// meanwhile is met when the caller is back in Ruby code. While one is pending the GVL stays.
///
/// `work` must not touch Ruby objects.
pub fn without_gvl<T: Send, W: FnOnce() -> T + Send>(work: W) -> T {
    let mut job = Job {
        work: Some(work),
        outcome: None,
    };
    // SAFETY: `job` outlives the call, in which `run` is called once at most, with a pointer
    // of the type that it takes. This variant of the function neither raises nor looks at
    // interrupts afterwards. Without a function to unblock it, nobody interrupts the work.
    unsafe {
        rb_sys::rb_thread_call_without_gvl2(
            Some(run::<T, W>),
            ptr::from_mut(&mut job).cast(),
            None,
            ptr::null_mut(),
        );
    }
    match (job.outcome, job.work) {
        (Some(Ok(result)), _) => result,
        (Some(Err(panic)), _) => resume_unwind(panic),
        // An interrupt is pending, and so the GVL has been kept.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that was begun has an outcome"),
    }
}

struct Job<T, W> {
    work: Option<W>,
    outcome: Option<Result<T, Box<dyn Any + Send>>>,
}

/// A panic stays on our side of Ruby's frames.
unsafe extern "C" fn run<T: Send, W: FnOnce() -> T + Send>(job: *mut c_void) -> *mut c_void {
    // SAFETY: `without_gvl` gives a pointer to its job, and waits.
    let job = unsafe { &mut *job.cast::<Job<T, W>>() };
    if let Some(work) = job.work.take() {
        job.outcome = Some(catch_unwind(AssertUnwindSafe(work)));
    }
    ptr::null_mut()
}

//! Labels in traced sessions: what is counted from the moment on at which a fiber gets some, or another
//! one runs, counts under its labels. With the GVL, on the main Ractor.

use crate::ruby::threads::RubyThread;
use crate::running::tracing::with_tracer;
use crate::running::{derived_labels, label_set};
use magnus::Error;
use rperf_vm::Gvl;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The present fiber of the calling thread may have other labels than before.
pub fn note_present(gvl: &Gvl<'_>) {
    if !label_set::are_used(gvl) {
        return;
    }
    with_tracer(gvl, |traced, tracer| {
        let thread = RubyThread::current(gvl);
        tracer.label(label_set::of_thread(gvl, thread), traced.now());
    });
}

/// The calling thread has switched to another fiber. A new one inherits its labels. Runs Ruby code, and
/// fails if an interrupt comes meanwhile.
pub fn switched(gvl: &mut Gvl<'_>) -> Result<(), Error> {
    if !label_set::are_used(gvl) {
        return Ok(());
    }
    let adopted = catch_unwind(AssertUnwindSafe(|| derived_labels::adopt(gvl)));
    note_present(gvl);
    adopted.unwrap_or(Ok(()))
}

//! The chosen methods of the running session, and the way to them. They belong to a sampling
//! session, which may be at rest for good. What the hook touches is the main Ractor's, and its GVL
//! protects it.

use rperf_engine::trace::{TargetedTracer, TraceClock};
use rperf_engine::{Gvl, GvlCell, SessionSlot};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is counted of chosen methods. Put in and taken out with the main Ractor's GVL, and let go
/// of in a forked child.
pub static TARGETS: SessionSlot<Targets> = SessionSlot::empty();

/// Other Ractors have called chosen methods.
pub static OTHER_RACTORS: AtomicBool = AtomicBool::new(false);

/// The chosen methods of a session.
pub struct Targets {
    pub clock: TraceClock,
    pub tracer: GvlCell<TargetedTracer>,
    /// What is to be said of them: those that weren't found, for one.
    pub notes: GvlCell<Vec<String>>,
    failed: AtomicBool,
}

impl Targets {
    pub fn new(clock: TraceClock) -> Self {
        Self {
            clock,
            tracer: GvlCell::new(TargetedTracer::new(clock, clock.reading())),
            notes: GvlCell::new(Vec::new()),
            failed: AtomicBool::new(false),
        }
    }

    /// Whether an internal error has ended it.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }
}

/// Runs a hook's work for the chosen methods, unless there are none or they have failed. A panic
/// ends their tracing: one line says so, and the program runs on.
#[inline]
pub fn with_targets(gvl: &Gvl<'_>, work: impl FnOnce(&Targets, &mut TargetedTracer)) {
    let Some(targets) = TARGETS.get(gvl).filter(|it| !it.has_failed()) else {
        return;
    };
    let at_work = AssertUnwindSafe(|| {
        if let Some(mut tracer) = targets.tracer.borrow(gvl) {
            work(targets, &mut tracer);
        }
    });
    if catch_unwind(at_work).is_err() && !targets.failed.swap(true, Relaxed) {
        eprintln!("rperf: internal error, tracing has stopped; the program runs on");
    }
}

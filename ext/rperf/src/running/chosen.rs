//! The chosen methods of the running session, and the way to them. They belong to a sampling
//! session, which may be at rest for good. What the hook touches is the main Ractor's, and its GVL
//! protects it.

use super::tracing::ThreadNumbers;
use crate::ruby::threads::RubyThread;
use rperf_tracing::{TargetedTracer, TraceClock};
use rperf_vm::{Gvl, GvlCell, SessionSlot};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What is counted of chosen methods. Put in and taken out with the main Ractor's GVL, and let go
/// of in a forked child.
pub static TARGETS: SessionSlot<Targets> = SessionSlot::empty();

/// Other Ractors have called chosen methods.
pub static OTHER_RACTORS: AtomicBool = AtomicBool::new(false);

/// What the Ruby half knows of the chosen methods.
#[derive(Clone, Default)]
pub struct Notes {
    /// Lines about them for people.
    pub lines: Vec<String>,
    /// The names of those that are there.
    pub found: Vec<String>,
    /// The names of those that aren't.
    pub not_found: Vec<String>,
    /// The names of those that are there and have no calls that can be traced.
    pub not_traceable: Vec<String>,
}

/// The chosen methods of a session.
pub struct Targets {
    pub clock: TraceClock,
    pub tracer: GvlCell<TargetedTracer>,
    /// What is to be said of them.
    pub notes: GvlCell<Notes>,
    numbers: ThreadNumbers,
    threads: AtomicU32,
    failed: AtomicBool,
}

impl Targets {
    pub fn new(clock: TraceClock) -> Self {
        Self {
            clock,
            tracer: GvlCell::new(TargetedTracer::new(clock, clock.reading())),
            notes: GvlCell::new(Notes::default()),
            numbers: ThreadNumbers::new(),
            threads: AtomicU32::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// The number of a thread of the main Ractor, as the tracer has it: an even one.
    #[inline]
    pub fn number_of(&self, thread: RubyThread<'_>) -> usize {
        let number = self.numbers.get(thread).unwrap_or_else(|| {
            let number = self.threads.fetch_add(1, Relaxed);
            self.numbers.set(thread, number);
            number
        });
        number as usize * 2
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

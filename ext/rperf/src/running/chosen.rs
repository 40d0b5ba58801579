//! The chosen methods of the running session, which samples or does nothing else, and the way to them.
//! What the hook touches is the main Ractor's, and its GVL protects it.

use super::tracing::ThreadNumbers;
use crate::message;
use crate::ruby::threads::RubyThread;
use rperf_session::settings::{Clock, Settings};
use rperf_tracing::{TargetedTracer, TraceClock};
use rperf_vm::{Gvl, GvlCell, SessionPart};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The chosen methods of the running session, if it has some.
pub(super) static CHOSEN: SessionPart<Chosen> = SessionPart::none();

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
pub struct Chosen {
    pub clock: TraceClock,
    pub tracer: GvlCell<TargetedTracer>,
    /// What is to be said of them.
    pub notes: GvlCell<Notes>,
    numbers: ThreadNumbers,
    threads: AtomicU32,
    failed: AtomicBool,
}

impl Chosen {
    /// The methods that the settings choose, if they choose some.
    pub fn of(settings: &Settings) -> Option<Self> {
        if settings.only().is_empty() {
            return None;
        }
        OTHER_RACTORS.store(false, Relaxed);
        let clock = match settings.clock() {
            // That of ticks is refused.
            Clock::Best | Clock::Tick => TraceClock::best(),
            Clock::Monotonic => TraceClock::Monotonic,
        };
        Some(Self {
            clock,
            tracer: GvlCell::new(TargetedTracer::new(clock, clock.reading())),
            notes: GvlCell::new(Notes::default()),
            numbers: ThreadNumbers::new(),
            threads: AtomicU32::new(0),
            failed: AtomicBool::new(false),
        })
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

/// The chosen methods of the running session, until the token is lent to code that may run Ruby code.
#[inline]
pub fn chosen<'a>(gvl: &'a Gvl<'_>) -> Option<&'a Chosen> {
    CHOSEN.get(gvl)
}

/// Runs a hook's work for the chosen methods, unless there are none or they have failed. A panic
/// ends their tracing: one line says so, and the program runs on.
#[inline]
pub fn with_chosen(gvl: &Gvl<'_>, work: impl FnOnce(&Chosen, &mut TargetedTracer)) {
    let Some(chosen) = chosen(gvl).filter(|it| !it.has_failed()) else {
        return;
    };
    let at_work = AssertUnwindSafe(|| {
        if let Some(mut tracer) = chosen.tracer.borrow(gvl) {
            work(chosen, &mut tracer);
        }
    });
    if catch_unwind(at_work).is_err() && !chosen.failed.swap(true, Relaxed) {
        message::say_after_panic("internal error, tracing has stopped; the program runs on");
    }
}

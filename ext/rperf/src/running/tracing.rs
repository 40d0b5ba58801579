//! A session that traces calls, and the way to it. What hooks on calls touch is the main Ractor's, and
//! its GVL protects it.

use crate::message;
use crate::ruby::threads::{RubyThread, ThreadKey};
use rperf_sampling::Sections;
use rperf_tracing::{Calibration, ThreadNumber, Timekeeper, TraceClock, TraceLevel, Tracer};
use rperf_vm::{Gvl, GvlCell, OthersReady, SessionPart};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// The running session, if it traces calls.
pub(super) static TRACING: SessionPart<TraceSession> = SessionPart::none();

/// Key of a thread's number.
static NUMBER: ThreadKey = ThreadKey::new();

/// The id of the last session: numbers of threads of others don't count.
static LAST_ID: AtomicU32 = AtomicU32::new(0);

/// Whether sessions compare their stacks with the VM's.
#[cfg(feature = "measure")]
static CHECKS: AtomicBool = AtomicBool::new(false);

/// From the next session on, stacks are compared with the VM's at random events: for specs.
#[cfg(feature = "measure")]
pub fn check_stacks() {
    CHECKS.store(true, Relaxed);
}

/// Threads of a session, by small numbers: another thread may come to have the same object.
pub struct ThreadNumbers {
    id: u32,
}

impl ThreadNumbers {
    /// The numbers of a new session's threads.
    pub fn new() -> Self {
        // Small, so that a number and it fit into a pointer.
        let id = LAST_ID.fetch_add(1, Relaxed).wrapping_add(1) & 0x7fff_ffff;
        Self { id }
    }

    /// The number of a thread of the main Ractor, if it has one.
    #[inline]
    pub fn get(&self, thread: RubyThread<'_>) -> Option<u32> {
        let slot = NUMBER.get(thread).addr();
        let (id, number) = ((slot >> 32) as u32, slot as u32);
        (id == self.id && number > 0).then(|| number - 1)
    }

    /// Notes the number of a thread.
    pub fn set(&self, thread: RubyThread<'_>, number: u32) {
        let slot = (self.id as usize) << 32 | (number as usize + 1);
        NUMBER.set(thread, ptr::without_provenance_mut(slot));
    }
}

/// How a session traces, and what was found as it was set up. Nothing of it changes once the session
/// runs.
pub struct TraceSetup {
    pub level: TraceLevel,
    pub clock: TraceClock,
    pub calibration: Calibration,
    /// Notes the time, if the clock needs that.
    pub timekeeper: Option<Timekeeper>,
    /// YJIT was on.
    pub with_yjit: bool,
    /// Objects are counted.
    pub counts_objects: bool,
    /// The current directory then.
    pub directory: PathBuf,
}

impl TraceSetup {
    fn new(level: TraceLevel, clock: TraceClock) -> Self {
        Self {
            level,
            clock,
            calibration: Calibration::default(),
            timekeeper: None,
            with_yjit: false,
            counts_objects: false,
            directory: env::current_dir().unwrap_or_default(),
        }
    }
}

/// What has become of a session since it began. Calls never count again once it has failed.
#[derive(Default)]
pub struct TraceProgress {
    /// Other Ractors have been seen.
    pub other_ractors: AtomicBool,
    /// Its hooks are there: a deferred one has none before its first section.
    pub has_hooks: AtomicBool,
    has_failed: AtomicBool,
    /// Calls don't count: it is paused, or has failed.
    is_off: AtomicBool,
}

impl TraceProgress {
    /// Calls count from here on, or don't.
    pub fn set_counting(&self, counts: bool) {
        self.is_off.store(!counts || self.has_failed(), Relaxed);
    }

    /// Whether calls count.
    #[inline]
    fn is_counting(&self) -> bool {
        !self.is_off.load(Relaxed)
    }

    /// Whether an internal error has ended its tracing.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// An internal error ends its tracing. Returns whether that is the first one.
    fn fail(&self) -> bool {
        let is_first = !self.has_failed.swap(true, Relaxed);
        self.is_off.store(true, Relaxed);
        is_first
    }
}

/// A traced session.
pub struct TraceSession {
    pub setup: TraceSetup,
    pub progress: TraceProgress,
    pub tracer: GvlCell<Tracer>,
    /// When threads became ready to run, on the clock of tracing.
    pub ready: OthersReady,
    pub sections: Sections,
    numbers: ThreadNumbers,
}

impl TraceSession {
    pub fn new(level: TraceLevel, clock: TraceClock) -> Self {
        let tracer = Tracer::new(level, clock, clock.reading());
        #[cfg(feature = "measure")]
        let tracer = if CHECKS.load(Relaxed) {
            tracer.with_stack_check()
        } else {
            tracer
        };
        Self {
            setup: TraceSetup::new(level, clock),
            progress: TraceProgress::default(),
            tracer: GvlCell::new(tracer),
            ready: OthersReady::default(),
            sections: Sections::default(),
            numbers: ThreadNumbers::new(),
        }
    }

    /// The time, on the clock of tracing.
    #[inline]
    pub fn now(&self) -> u64 {
        self.setup.clock.now()
    }

    /// The number of a thread of the main Ractor that was announced.
    #[inline]
    pub fn number_of(&self, thread: RubyThread<'_>) -> Option<ThreadNumber> {
        self.numbers.get(thread).map(ThreadNumber)
    }

    /// Notes the number of a thread.
    pub fn set_number(&self, thread: RubyThread<'_>, number: ThreadNumber) {
        self.numbers.set(thread, number.0);
    }
}

/// Makes the key, once per process. With the GVL.
pub fn make_key() {
    NUMBER.make();
}

/// The running session, if it traces calls, until the token is lent to code that may run Ruby code.
#[inline]
pub fn trace_session<'a>(gvl: &'a Gvl<'_>) -> Option<&'a TraceSession> {
    TRACING.get(gvl)
}

/// Does what [`trace_session`] does, in a hook without a token.
///
/// # Safety
/// In a hook that is removed before a session is freed.
#[inline]
pub unsafe fn trace_session_unguarded<'a>() -> Option<&'a TraceSession> {
    // SAFETY: by this function's contract.
    unsafe { TRACING.get_unguarded() }
}

/// Runs a hook's work for the traced session, unless there is none or it has failed. A panic
/// ends its tracing: one line says so, and the program runs on.
#[inline]
pub fn with_tracer(gvl: &Gvl<'_>, work: impl FnOnce(&TraceSession, &mut Tracer)) {
    if let Some(session) = trace_session(gvl).filter(|it| !it.progress.has_failed()) {
        with(gvl, session, work);
    }
}

/// Runs a hook's work for the traced session, as [`with_tracer`] does, if calls count.
#[inline]
pub fn with_counting_tracer(gvl: &Gvl<'_>, work: impl FnOnce(&TraceSession, &mut Tracer)) {
    if let Some(session) = trace_session(gvl).filter(|it| it.progress.is_counting()) {
        with(gvl, session, work);
    }
}

#[inline]
fn with(gvl: &Gvl<'_>, session: &TraceSession, work: impl FnOnce(&TraceSession, &mut Tracer)) {
    let at_work = AssertUnwindSafe(|| {
        if let Some(mut tracer) = session.tracer.borrow(gvl) {
            work(session, &mut tracer);
        }
    });
    if catch_unwind(at_work).is_err() && session.progress.fail() {
        message::say_after_panic("internal error, tracing has stopped; the program runs on");
    }
}

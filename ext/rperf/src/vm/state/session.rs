//! The running session, and the way to it: with the GVL by a token, in hooks and handlers
//! without it by a promise. A panic in a hook ends here.

use super::ractor;
use super::sections::Sections;
use rperf_engine::threads::{NewList, OthersReady, ThreadState};
use rperf_engine::{
    Backtrace, GcProgress, Gvl, GvlCell, GvlRef, Mode, Session, SessionSlot, TickCapture, Ticks,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::SeqCst};

/// The session that is running. Put in and taken out with the main Ractor's GVL, and let go of
/// in a forked child.
pub static SESSION: SessionSlot<RunningSession> = SessionSlot::empty();

/// No two sessions of a process have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub u64);

/// A running session with all that hooks need.
pub struct RunningSession {
    pub id: SessionId,
    /// The part that needs the GVL.
    pub gvl_state: GvlCell<GvlState>,
    pub mode: Mode,
    /// The same ticks as the engine's, for hooks that need nothing else.
    pub ticks: Arc<Ticks>,
    /// The stacks that were taken at ticks.
    pub tick_capture: TickCapture,
    /// Threads seen for the first time, from any thread.
    pub new_threads: NewList<ThreadState>,
    /// When threads became ready that were woken by others.
    pub others_ready: OthersReady,
    /// How many threads have ended and wait to be merged.
    pub ended_threads: AtomicUsize,
    pub sections: Sections,
    /// Some fiber has had labels.
    pub uses_labels: AtomicBool,
    /// Native threads may run several Ruby threads (RUBY_MN_THREADS=1): then the
    /// CPU clock of a thread that is not running can't be told.
    pub shares_native_threads: bool,
    /// After a panic, and while stopping: callbacks do nothing any more.
    pub is_over: AtomicBool,
}

/// What only the holder of the GVL may touch.
pub struct GvlState {
    pub engine: Session,
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    pub threads: Vec<Box<ThreadState>>,
    pub backtrace: Backtrace,
    pub gc: GcProgress,
}

impl RunningSession {
    /// The part that needs the GVL; `None` if it is borrowed further up the same stack.
    #[inline]
    pub fn state<'a>(&'a self, gvl: &'a Gvl<'_>) -> Option<GvlRef<'a, GvlState>> {
        self.gvl_state.borrow(gvl)
    }

    /// Whether time counts, and callbacks do something.
    #[inline]
    fn is_counting(&self) -> bool {
        self.sections.are_open() && !self.is_over.load(Acquire)
    }

    /// After a panic: sampling ends for this session, the program runs on, and one line
    /// says so.
    #[cold]
    fn fail(&self) {
        if !self.is_over.swap(true, SeqCst) {
            // Nobody tells the timer any more who runs.
            self.ticks.pause();
            eprintln!("rperf: internal error, sampling has stopped; the program runs on");
        }
    }

    /// Bytes held.
    ///
    /// # Safety
    /// As for [`GvlCell::peek`].
    pub unsafe fn memory(&self) -> usize {
        // SAFETY: by this function's contract.
        let (state, tick_capture) = unsafe { (self.gvl_state.peek(), self.tick_capture.memory()) };
        // SAFETY: as above.
        let threads = state.threads.iter().map(|it| unsafe { it.memory() });
        let slots = state.threads.capacity() * size_of::<Box<ThreadState>>();
        state.engine.memory()
            + state.backtrace.memory()
            + tick_capture
            + slots
            + threads.sum::<usize>()
    }
}

/// The running session, until the token is lent to code that may run Ruby code.
#[inline]
pub fn session<'a>(gvl: &'a Gvl<'_>) -> Option<&'a RunningSession> {
    SESSION.get(gvl)
}

/// The running session if time counts in it, and it hasn't failed.
#[inline]
pub fn counting_session<'a>(gvl: &'a Gvl<'_>) -> Option<&'a RunningSession> {
    session(gvl).filter(|session| session.is_counting())
}

/// Runs a hook's work for the session in which time counts, if there is one. A panic must not
/// unwind into the VM.
///
/// # Safety
/// In a hook that is removed before a session is freed, which waits for its calls.
#[inline]
pub unsafe fn in_hook(work: impl FnOnce(&RunningSession)) {
    // SAFETY: by this function's contract.
    let session = unsafe { SESSION.get_unguarded() };
    if let Some(session) = session.filter(|session| session.is_counting())
        && catch_unwind(AssertUnwindSafe(|| work(session))).is_err()
    {
        session.fail();
    }
}

/// [`in_hook`] for work that may run Ruby code, and only on the main Ractor: on others nothing
/// is touched, as nothing keeps a session alive there.
///
/// # Safety
/// In a callback of the VM on a thread that runs Ruby code.
#[inline]
pub unsafe fn in_main_ractor(work: impl FnOnce(&mut Gvl<'_>)) {
    // SAFETY: by this function's contract.
    if !unsafe { ractor::is_main() } {
        return;
    }
    // SAFETY: a thread of the main Ractor that runs Ruby code.
    let mut gvl = unsafe { Gvl::assume_held() };
    if counting_session(&gvl).is_some()
        && catch_unwind(AssertUnwindSafe(|| work(&mut gvl))).is_err()
        && let Some(session) = session(&gvl)
    {
        session.fail();
    }
}

/// [`in_main_ractor`] for work that runs no Ruby code.
///
/// # Safety
/// As there.
#[inline]
pub unsafe fn with_counting_session(work: impl FnOnce(&Gvl<'_>, &RunningSession)) {
    let with_session = |gvl: &mut Gvl<'_>| {
        if let Some(session) = counting_session(gvl) {
            work(gvl, session);
        }
    };
    // SAFETY: by this function's contract.
    unsafe { in_main_ractor(with_session) };
}

/// Ends the session that nobody has stopped, as the VM ends: the worker must not
/// outlive it. All else is left to the process' end, as hooks on other threads may
/// be at work on it.
///
/// # Safety
/// The VM runs no Ruby code any more.
pub unsafe fn end_with_vm() {
    let Some(session) = SESSION.abandon() else {
        return;
    };
    session.is_over.store(true, SeqCst);
    // SAFETY: nobody else can have the GVL by this function's contract.
    let gvl = unsafe { Gvl::assume_held() };
    // A panic must not unwind into the VM; it has printed its message.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(mut state) = session.state(&gvl) {
            state.engine.abandon();
        }
    }));
}

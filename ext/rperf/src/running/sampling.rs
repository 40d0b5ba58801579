//! A session that samples, and the way to it: with the GVL by a token, in hooks and handlers without it
//! by a promise. A panic in a hook ends here.

use super::session_sums::SessionSums;
use crate::message;
use crate::ruby::ractor::AnyGvl;
use rperf_sampling::threads::ThreadState;
use rperf_sampling::{RunningSession, Session};
use rperf_vm::{Gvl, SessionPart};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The running session, if it samples.
pub(super) static SAMPLING: SessionPart<SamplingSession> = SessionPart::none();

/// Sessions that are over, and whose workers and timers have yet to end: none can begin meanwhile.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// A session that is over, until its worker has ended.
pub struct Ending(());

impl Ending {
    pub fn begin() -> Ending {
        ENDING.fetch_add(1, Relaxed);
        Ending(())
    }

    /// Whether there is one.
    pub fn is_there() -> bool {
        ENDING.load(Relaxed) != 0
    }

    /// In a forked child nothing is left to end. Async-signal-safe.
    pub fn forget() {
        ENDING.store(0, Relaxed);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        ENDING.fetch_sub(1, Relaxed);
    }
}

/// A session that samples.
pub struct SamplingSession {
    /// What is summed beside samples.
    pub sums: SessionSums,
    running: RunningSession,
}

impl SamplingSession {
    pub fn new(running: RunningSession, sums: SessionSums) -> Self {
        Self { sums, running }
    }

    /// The engine's session and the threads' states: the session is taken down.
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    pub fn into_parts(self) -> (Session, Vec<Box<ThreadState>>) {
        self.running.into_parts()
    }

    /// Ends the worker, as the VM ends.
    ///
    /// # Safety
    /// The VM runs no Ruby code any more.
    pub unsafe fn end_with_vm(&self) {
        self.end();
        // SAFETY: nobody else can have the GVL by this function's contract.
        let gvl = unsafe { Gvl::assume_held() };
        // A panic must not unwind into the VM; it has printed its message.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Some(mut state) = self.state(&gvl) {
                state.engine.abandon();
            }
        }));
    }
}

impl Deref for SamplingSession {
    type Target = RunningSession;

    #[inline]
    fn deref(&self) -> &RunningSession {
        &self.running
    }
}

/// After a panic in the session's callbacks: one line says so, and the program runs on.
#[cold]
fn fail(session: &RunningSession) {
    if session.fail() {
        message::say_after_panic("internal error, sampling has stopped; the program runs on");
    }
}

/// Runs `work` on the callbacks' data outside of them. A panic there ends the session's
/// sampling, and the caller goes on.
pub fn catching(session: &RunningSession, work: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(work)).is_err() {
        fail(session);
    }
}

/// The running session, if it samples, until the token is lent to code that may run Ruby code.
#[inline]
pub fn sampling<'a>(gvl: &'a Gvl<'_>) -> Option<&'a SamplingSession> {
    SAMPLING.get(gvl)
}

/// Whether the running session measures ops.
pub fn measures_ops(gvl: &Gvl<'_>) -> bool {
    sampling(gvl).is_some_and(|session| session.sums.ops.is_some())
}

/// The running session if it samples, time counts in it, and it hasn't failed.
#[inline]
pub fn counting_session<'a>(gvl: &'a Gvl<'_>) -> Option<&'a SamplingSession> {
    sampling(gvl).filter(|session| session.is_counting())
}

/// Runs a hook's work for the session in which time counts, if there is one. A panic must not
/// unwind into the VM.
///
/// # Safety
/// In a hook that is removed before a session is freed, which waits for its calls.
#[inline]
pub unsafe fn in_hook(work: impl FnOnce(&RunningSession)) {
    // SAFETY: by this function's contract.
    let session = unsafe { SAMPLING.get_unguarded() };
    if let Some(session) = session.filter(|session| session.is_counting())
        && catch_unwind(AssertUnwindSafe(|| work(session))).is_err()
    {
        fail(session);
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
    let AnyGvl::Main(mut gvl) = (unsafe { AnyGvl::assume_held() }) else {
        return;
    };
    if counting_session(&gvl).is_some() {
        catching_with(&mut gvl, work);
    }
}

/// [`in_main_ractor`] also while no time counts.
///
/// # Safety
/// In a callback of the VM on a thread that runs Ruby code.
pub unsafe fn with_session_of_main_ractor(work: impl FnOnce(&mut Gvl<'_>)) {
    // SAFETY: by this function's contract.
    let AnyGvl::Main(mut gvl) = (unsafe { AnyGvl::assume_held() }) else {
        return;
    };
    if sampling(&gvl).is_some() {
        catching_with(&mut gvl, work);
    }
}

/// [`catching`] for work that may run a collection, or Ruby code.
pub fn catching_with(gvl: &mut Gvl<'_>, work: impl FnOnce(&mut Gvl<'_>)) {
    if catch_unwind(AssertUnwindSafe(|| work(gvl))).is_err()
        && let Some(session) = sampling(gvl)
    {
        fail(session);
    }
}

/// [`catching`] for work of a hook on the main Ractor that runs no Ruby code, if there is a session
/// in which time counts.
#[inline]
pub fn with_counting_session(gvl: &Gvl<'_>, work: impl FnOnce(&SamplingSession)) {
    if let Some(session) = counting_session(gvl) {
        catching(session, || work(session));
    }
}

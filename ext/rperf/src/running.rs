//! The running session, whatever its kind: it samples, traces calls, or only counts the calls of chosen
//! methods. There is one at a time. It is put in and taken out here alone, with the main Ractor's GVL;
//! hooks that need nothing but what belongs to its kind find that by one load.

pub mod chosen;
pub mod derived_labels;
pub mod facts;
pub mod label_set;
pub mod open_op;
pub mod roots;
pub mod sampling;
pub mod session_sums;
pub mod tracing;
pub mod weak_maps;

use crate::profile::errors;
use crate::ruby::thread_names;
use chosen::{CHOSEN, Chosen};
use magnus::{Error, Ruby};
use rperf_protocol::hello::Beginner;
use rperf_sampling::{Sections, set_other_ractors};
use rperf_session::settings::Settings;
use rperf_vm::{GC_WATCH, Gvl, SessionId, SessionSlot};
use sampling::{Ending, SAMPLING, SamplingSession};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use tracing::{TRACING, TraceSession};

/// The running session. Let go of in a forked child.
static RUNNING: SessionSlot<Running> = SessionSlot::empty();

/// A session.
pub struct Running {
    /// Tells it from sessions before and after it.
    pub id: SessionId,
    pub settings: Arc<Settings>,
    /// Only what is in a section counts.
    pub has_sections: bool,
    /// The methods that its settings choose.
    pub chosen: Option<Chosen>,
    pub kind: Kind,
    beginner: Beginner,
    /// Some fiber has had labels.
    uses_labels: AtomicBool,
}

/// What a session does.
pub enum Kind {
    /// A session that takes samples.
    Sampling(Box<SamplingSession>),
    /// A session that counts and times all calls.
    Tracing(Box<TraceSession>),
    /// A session that measures what tracing costs, and is nobody's to end.
    Calibration(Box<TraceSession>),
    /// Its chosen methods are all.
    Chosen,
}

impl Running {
    pub fn new(settings: &Arc<Settings>, beginner: Beginner, kind: Kind) -> Self {
        Self {
            id: match &kind {
                Kind::Sampling(session) => session.id,
                _ => SessionId::next(),
            },
            has_sections: settings.defer(),
            chosen: Chosen::of(settings),
            settings: Arc::clone(settings),
            kind,
            beginner,
            uses_labels: AtomicBool::new(false),
        }
    }

    /// Its sections and pauses, if it can have some.
    pub fn sections(&self) -> Option<&Sections> {
        match &self.kind {
            Kind::Sampling(session) => Some(&session.sections),
            Kind::Tracing(session) => Some(&session.sections),
            Kind::Calibration(_) | Kind::Chosen => None,
        }
    }

    /// Whether some fiber has had labels.
    #[inline]
    pub fn uses_labels(&self) -> bool {
        self.uses_labels.load(Relaxed)
    }

    /// Some fiber has labels.
    pub fn use_labels(&self) {
        // A store would take the cache line away from all threads that look.
        if !self.uses_labels() {
            self.uses_labels.store(true, SeqCst);
        }
    }
}

/// The running session, until the token is lent to code that may run Ruby code.
#[inline]
pub fn running<'a>(gvl: &'a Gvl<'_>) -> Option<&'a Running> {
    RUNNING.get(gvl)
}

/// The running session, in a collection.
///
/// # Safety
/// The conditions are those of [`SessionSlot::get_unguarded`].
unsafe fn unguarded<'a>() -> Option<&'a Running> {
    // SAFETY: by this function's contract.
    unsafe { RUNNING.get_unguarded() }
}

/// The session that runs and is the program's, or its clients': no calibration.
#[inline]
pub fn session<'a>(gvl: &'a Gvl<'_>) -> Option<&'a Running> {
    running(gvl).filter(|it| !matches!(it.kind, Kind::Calibration(_)))
}

/// Fails if a session is running or about to end: to be asked when the last Ruby code before
/// [`begin`] has run.
pub fn check_none(ruby: &Ruby) -> Result<(), Error> {
    if !RUNNING.is_empty() || Ending::is_there() {
        return Err(errors::running_already(ruby));
    }
    Ok(())
}

/// A session is about to begin. `others`: there are other Ractors.
pub fn prepare(others: bool) {
    thread_names::note_main();
    set_other_ractors(others);
    GC_WATCH.session_begins();
}

/// The session runs from here on. None does.
pub fn begin(gvl: &Gvl<'_>, running: Running) {
    facts::note(&running.settings, running.beginner);
    let running = RUNNING.put(gvl, Box::new(running));
    // SAFETY: the session is in its slot. `end` and `abandon`, which alone take it out, have all parts
    // forgotten before.
    unsafe {
        match &running.kind {
            Kind::Sampling(session) => SAMPLING.note(session),
            Kind::Tracing(session) | Kind::Calibration(session) => TRACING.note(session),
            Kind::Chosen => {}
        }
        if let Some(chosen) = &running.chosen {
            CHOSEN.note(chosen);
        }
    }
}

/// The session with this id, which runs no more from here on. `None` if it is over: another one, which
/// has begun since, goes on.
///
/// # Safety
/// Nothing that has found the session without a token is at work: its hooks and handlers have been
/// removed. Those on internal events may have to stay: they look for a session with this GVL only, or
/// while all threads but theirs are stopped. No caller further up the stack has the session by a token
/// of its own.
pub unsafe fn end(gvl: &mut Gvl<'_>, id: SessionId) -> Option<Box<Running>> {
    running(gvl).filter(|running| running.id == id)?;
    forget();
    // SAFETY: by this function's contract.
    unsafe { RUNNING.take(gvl) }
}

/// Lets go of the session, which is never freed: as the VM ends, and in a forked child.
/// Async-signal-safe.
pub fn abandon() -> Option<&'static Running> {
    forget();
    RUNNING.abandon()
}

/// Nothing tells of the session any more. Async-signal-safe.
fn forget() {
    SAMPLING.forget();
    TRACING.forget();
    CHOSEN.forget();
    facts::forget();
}

/// Ends the session that nobody has stopped, as the VM ends: its worker must not outlive it. All else is
/// left to the process' end, as hooks on other threads may be at work on it.
///
/// # Safety
/// The VM runs no Ruby code any more.
unsafe fn end_with_vm() {
    if let Some(running) = abandon()
        && let Kind::Sampling(session) = &running.kind
    {
        // SAFETY: by this function's contract.
        unsafe { session.end_with_vm() };
    }
}

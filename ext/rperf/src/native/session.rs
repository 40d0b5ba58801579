//! `Native.start`, `stop` and `snapshot`, for sampling and traced sessions alike: one of them runs
//! at a time. With the GVL, on the main Ractor, outside of hooks.

use super::requests;
use crate::fork;
use crate::interrupts::{Interrupts, let_others_run};
use crate::labels;
use crate::profile::errors;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::{frames, ractor, thread_names};
use crate::running::facts;
use crate::running::sampling::{Ending, measures_ops};
use crate::running::{self, Kind, Running, running};
use crate::sampling::{Finish, snapshot, start, step};
use crate::tracing::{self, targets};
use magnus::{Error, Ruby, Value};
use rperf_port::pull::Holding;
use rperf_protocol::hello::Beginner;
use rperf_session::settings::Settings;
use rperf_vm::Gvl;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// How many threads of the program are about to begin a session.
static PROGRAM_BEGINS: AtomicUsize = AtomicUsize::new(0);

/// While it lives, clients of the port begin no session.
pub struct ProgramBegins(());

impl ProgramBegins {
    /// The program is about to begin one.
    pub fn new() -> Self {
        PROGRAM_BEGINS.fetch_add(1, SeqCst);
        Self(())
    }

    /// Whether there is one.
    pub fn is_there() -> bool {
        PROGRAM_BEGINS.load(SeqCst) > 0
    }

    /// In a forked child: the thread isn't there.
    pub fn forget() {
        PROGRAM_BEGINS.store(0, SeqCst);
    }
}

impl Drop for ProgramBegins {
    fn drop(&mut self) {
        // In a child that was forked meanwhile there is nothing to take away.
        let less = |count: usize| Some(count.saturating_sub(1));
        let _ = PROGRAM_BEGINS.fetch_update(SeqCst, SeqCst, less);
    }
}

/// Begins a session with these settings. Fails if one is running. Returns false if clients of the
/// port can't begin theirs, as the program begins its own.
pub fn start(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    settings: &Arc<Settings>,
    beginner: Beginner,
) -> Result<bool, Error> {
    loop {
        while Ending::is_there() {
            let_others_run(gvl)?;
        }
        if settings.is_traced() && settings.only().is_empty() {
            prepare(ruby, gvl)?;
            tracing::start(ruby, gvl, settings)?;
            return Ok(true);
        }
        let others = ractor::are_there_others(ruby, gvl)?;
        let threads = LiveThreads::list(ruby, gvl)?;
        // Other threads have run.
        if beginner == Beginner::Clients && (ProgramBegins::is_there() || facts::is_running()) {
            return Ok(false);
        }
        if !Ending::is_there() {
            prepare(ruby, gvl)?;
            if settings.is_traced() {
                running::prepare(others);
                running::begin(gvl, Running::new(settings, beginner, Kind::Chosen));
            } else {
                start::begin(ruby, gvl, settings, &threads, others, beginner)?;
            }
            tell_port(gvl);
            targets::begin(gvl);
            return Ok(true);
        }
    }
}

/// Lets the port know how to see which thread has the GVL, if a session runs that notes it.
pub fn tell_port(gvl: &Gvl<'_>) {
    let Some(ticks) = step::ticks(gvl) else {
        return;
    };
    let ticks = Arc::downgrade(&ticks);
    rperf_port::session_begun(Arc::new(move || {
        let (tid, turn) = ticks.upgrade()?.holder()?;
        Some(Holding { tid: tid.0, turn })
    }));
}

/// Before a session begins. Fails if one is running; else removes hooks that a fork has left.
fn prepare(ruby: &Ruby, gvl: &Gvl<'_>) -> Result<(), Error> {
    running::check_none(ruby)?;
    frames::learn(gvl);
    thread_names::learn(gvl);
    match fork::remove_inherited_hooks() {
        true => Ok(()),
        false => Err(errors::forked_elsewhere(ruby)),
    }
}

/// Ends the session; its profile, or nothing if there is none, and the interrupts that have to
/// wait until it is kept.
pub fn stop(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<Value>, Interrupts), Error> {
    let has_accounts = requests::are_judged(gvl) || measures_ops(gvl);
    let stopped = match running(gvl).map(|it| &it.kind) {
        None => Ok(Default::default()),
        Some(Kind::Tracing(_) | Kind::Calibration(_)) => tracing::stop(ruby, gvl),
        Some(Kind::Chosen) => targets::stop_alone(ruby, gvl),
        Some(Kind::Sampling(_)) => snapshot::stop(ruby, gvl, |gvl| calls(ruby, gvl, false)),
    };
    // Should it fail, the sets stay, which are of a session that is over.
    let _ = labels::clear_cache(ruby);
    if has_accounts {
        requests::session_over(gvl);
    }
    stopped
}

/// The profile up to now, which is let go of if `clear`; nothing without a session.
pub fn snapshot(ruby: &Ruby, gvl: &mut Gvl<'_>, clear: bool) -> Result<Option<Value>, Error> {
    let (profile, interrupts) = match running(gvl).map(|it| &it.kind) {
        None => Default::default(),
        Some(Kind::Tracing(_) | Kind::Calibration(_)) => tracing::snapshot(ruby, gvl, clear)?,
        Some(Kind::Chosen) => targets::snapshot_alone(ruby, gvl, clear)?,
        Some(Kind::Sampling(_)) => {
            snapshot::snapshot(ruby, gvl, clear, |gvl| calls(ruby, gvl, clear))?
        }
    };
    interrupts.raise().map(|()| profile)
}

/// Adds what was counted of chosen methods to a profile of samples; it is let go of if `clear`.
fn calls(ruby: &Ruby, gvl: &mut Gvl<'_>, clear: bool) -> Result<Option<Finish>, Error> {
    let taken = targets::take(ruby, gvl, clear)?;
    Ok(taken.map(|taken| Box::new(move |profile| taken.add_to(profile)) as Finish))
}

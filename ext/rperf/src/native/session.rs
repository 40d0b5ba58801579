//! `Native.start`, `stop` and `snapshot`, for sampling and traced sessions alike: one of them runs
//! at a time. With the GVL, on the main Ractor, outside of hooks.

use crate::fork;
use crate::interrupts::{Interrupts, let_others_run};
use crate::labels;
use crate::profile::errors;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::ractor;
use crate::settings::SettingsObject;
use crate::trace::api::{self as tracing, targets};
use crate::trace::state::session::{TRACE, trace_session};
use crate::vm::api::{snapshot, start};
use crate::vm::state::session::{Ending, SESSION};
use magnus::{Error, Ruby, Value};
use rperf_engine::Gvl;
use rperf_live::hello::Session;
use rperf_session::settings::Settings;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The session that began last: the place of its mode in the list, and its frequency; 0 if it
/// traces calls.
static LAST: AtomicU64 = AtomicU64::new(0);
const MODES: [&str; 3] = ["cpu", "wall", "trace"];

/// What the port says of the session that runs. On the port's thread.
pub fn running() -> Option<Session> {
    let last = LAST.load(SeqCst);
    is_running().then(|| Session {
        mode: MODES[(last >> 32) as usize % MODES.len()].into(),
        frequency: last as u32,
    })
}

/// A session with these settings is about to begin.
fn note(settings: &Settings) {
    let mode = MODES.iter().position(|&mode| mode == settings.mode());
    let frequency = match settings.is_traced() {
        true => 0,
        false => settings.frequency(),
    };
    LAST.store(
        (mode.unwrap_or(0) as u64) << 32 | u64::from(frequency),
        SeqCst,
    );
}

/// Whether a session runs.
pub fn is_running() -> bool {
    !SESSION.is_empty() || !TRACE.is_empty()
}

/// Begins a session with these settings. Fails if one is running.
pub fn start(ruby: &Ruby, gvl: &mut Gvl<'_>, settings: &SettingsObject) -> Result<bool, Error> {
    let settings = &settings.0;
    loop {
        while Ending::is_there() {
            let_others_run(gvl)?;
        }
        if settings.is_traced() && settings.only().is_empty() {
            prepare(ruby, gvl, settings)?;
            tracing::start(ruby, gvl, settings)?;
            return Ok(true);
        }
        let others = ractor::are_there_others(ruby, gvl)?;
        let threads = LiveThreads::list(ruby, gvl)?;
        // Other threads have run.
        if !Ending::is_there() {
            prepare(ruby, gvl, settings)?;
            start::begin(ruby, gvl, settings, &threads, others)?;
            targets::begin(gvl, settings);
            return Ok(true);
        }
    }
}

/// Before a session with these settings begins. Fails if one is running; else removes hooks that a
/// fork has left.
fn prepare(ruby: &Ruby, gvl: &Gvl<'_>, settings: &Settings) -> Result<(), Error> {
    tracing::check_none_runs(ruby, gvl)?;
    if fork::remove_inherited_hooks() {
        note(settings);
        Ok(())
    } else {
        Err(errors::forked_elsewhere(ruby))
    }
}

/// Ends the session; its profile, or nothing if there is none, and the interrupts that have to
/// wait until it is kept.
pub fn stop(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<Value>, Interrupts), Error> {
    let stopped = match trace_session(gvl) {
        Some(_) => tracing::stop(ruby, gvl),
        None => snapshot::stop(ruby, gvl, |gvl, settings| {
            let calls = targets::take(ruby, gvl, settings, false);
            targets::end(gvl);
            calls
        }),
    };
    // Should it fail, the sets stay, which are of a session that is over.
    let _ = labels::clear_cache(ruby);
    stopped
}

/// The profile up to now, which is let go of if `clear`; nothing without a session.
pub fn snapshot(ruby: &Ruby, gvl: &mut Gvl<'_>, clear: bool) -> Result<Option<Value>, Error> {
    if trace_session(gvl).is_some() {
        let (profile, interrupts) = tracing::snapshot(ruby, gvl, clear)?;
        interrupts.raise().map(|()| profile)
    } else {
        snapshot::snapshot(ruby, gvl, clear, |gvl, settings| {
            targets::take(ruby, gvl, settings, clear)
        })
    }
}

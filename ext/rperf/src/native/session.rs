//! `Native.start`, `stop` and `snapshot`, for sampling and traced sessions alike: one of them runs
//! at a time. With the GVL, on the main Ractor, outside of hooks.

use crate::fork;
use crate::interrupts::{Interrupts, let_others_run};
use crate::labels;
use crate::profile::errors;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::{frames, ractor, thread_names};
use crate::running::sampling::{Ending, SESSION};
use crate::running::tracing::{TRACE, trace_session};
use crate::trace::api::{self as tracing, targets};
use crate::vm::api::{live, snapshot, start};
use magnus::{Error, Ruby, Value};
use rperf_model::Mode;
use rperf_port::Running;
use rperf_port::pull::Holding;
use rperf_protocol::hello::Session;
use rperf_session::settings::Settings;
use rperf_vm::Gvl;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The session that began last: the place of its mode in the list, and its frequency; 0 if it
/// traces calls.
static LAST: AtomicU64 = AtomicU64::new(0);
const MODES: [&str; 3] = [Mode::Cpu.name(), Mode::Wall.name(), rperf_model::TRACE];

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

/// In LAST: clients of the port have begun it.
const LIVE: u64 = 1 << 63;

/// Who begins a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginner {
    /// The program, or whoever has it profiled as a whole.
    Program,
    /// Clients of the port.
    Clients,
}

/// What the port says of the session that runs. On the port's thread.
pub fn running() -> Option<Running> {
    let last = LAST.load(SeqCst);
    is_running().then(|| Running {
        session: Session {
            frequency: last as u32,
            mode: MODES[(last >> 32) as usize & 0xff].into(),
        },
        is_live: last & LIVE != 0,
    })
}

/// A session with these settings is about to begin.
fn note(settings: &Settings, beginner: Beginner) {
    let mode = MODES.iter().position(|&mode| mode == settings.mode());
    let frequency = match settings.is_traced() {
        true => 0,
        false => settings.frequency(),
    };
    let live = match beginner {
        Beginner::Program => 0,
        Beginner::Clients => LIVE,
    };
    LAST.store(
        live | (mode.unwrap_or(0) as u64) << 32 | u64::from(frequency),
        SeqCst,
    );
}

/// Whether a session runs that clients of the port have begun. The program takes no notice of it.
pub fn is_live() -> bool {
    is_running() && was_live()
}

/// Whether clients had begun the session that began last.
pub fn was_live() -> bool {
    LAST.load(SeqCst) & LIVE != 0
}

/// Whether a session runs.
pub fn is_running() -> bool {
    !SESSION.is_empty() || !TRACE.is_empty()
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
            prepare(ruby, gvl, settings, beginner)?;
            tracing::start(ruby, gvl, settings)?;
            return Ok(true);
        }
        let others = ractor::are_there_others(ruby, gvl)?;
        let threads = LiveThreads::list(ruby, gvl)?;
        // Other threads have run.
        if beginner == Beginner::Clients && (ProgramBegins::is_there() || is_running()) {
            return Ok(false);
        }
        if !Ending::is_there() {
            prepare(ruby, gvl, settings, beginner)?;
            start::begin(ruby, gvl, settings, &threads, others)?;
            tell_port(gvl);
            targets::begin(gvl, settings);
            return Ok(true);
        }
    }
}

/// Lets the port know how to see which thread has the GVL, if a session runs that notes it.
pub fn tell_port(gvl: &Gvl<'_>) {
    let Some(ticks) = live::ticks(gvl) else {
        return;
    };
    let ticks = Arc::downgrade(&ticks);
    rperf_port::session_begun(Arc::new(move || {
        let (tid, turn) = ticks.upgrade()?.holder()?;
        Some(Holding { tid: tid.0, turn })
    }));
}

/// Before a session with these settings begins. Fails if one is running; else removes hooks that a
/// fork has left.
fn prepare(
    ruby: &Ruby,
    gvl: &Gvl<'_>,
    settings: &Settings,
    beginner: Beginner,
) -> Result<(), Error> {
    tracing::check_none_runs(ruby, gvl)?;
    frames::learn(gvl);
    thread_names::learn(gvl);
    if fork::remove_inherited_hooks() {
        note(settings, beginner);
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

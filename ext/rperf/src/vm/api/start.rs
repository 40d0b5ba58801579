//! The start of a sampling session. On a thread of the main Ractor, with the GVL.

use super::section;
use crate::profile::errors;
use crate::ruby::frames::{self, RubyVm};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::safepoint;
use crate::vm::hooks::tick;
use crate::vm::state::session::{SESSION, StartedSession};
use magnus::{Error, Ruby};
use rperf_engine::{
    Capture, Gvl, Mode, RunningSession, Session, SessionConfig, SessionId, TimerKind, VmCalls,
    set_other_ractors,
};
use rperf_session::settings::{self, Settings, Signal};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{env, io};

/// The id of the last session.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// Begins a session with these settings. None is running, and hooks that a fork has left are gone.
/// `others`: there are other Ractors. Runs no Ruby code, and so lets no other thread run.
pub fn begin(
    ruby: &Ruby,
    gvl: &Gvl<'_>,
    settings: &Arc<Settings>,
    threads: &LiveThreads,
    others: bool,
) -> Result<(), Error> {
    let options = StartOptions::new(settings);
    let cant_start =
        |error: io::Error| errors::rperf(ruby, format!("can't start profiling: {error}"));
    let mut engine = start_session(options.config, options.any_timer).map_err(cant_start)?;
    if let Err(error) = begin_capture(gvl, &mut engine, options.capture) {
        engine.abandon();
        let message = format!("can't start profiling with capture: :tick: {error}");
        return Err(errors::rperf(ruby, message));
    }
    let id = SessionId(LAST_ID.fetch_add(1, Relaxed) + 1);
    let shares_native_threads = env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1");
    let (vm, config) = (RubyVm(gvl), options.config);
    let lines = options.lines;
    let running = RunningSession::new(&vm, engine, id, config, lines, shares_native_threads);
    let session = StartedSession::new(Arc::clone(settings), running);
    for thread in threads.threads().filter(|thread| thread.has_frames()) {
        // Also where a forked child has inherited a state.
        thread.announce(gvl, &session.new_threads);
    }
    set_other_ractors(others);
    let session = SESSION.put(gvl, Box::new(session));
    if !options.defer {
        section::begin_only(gvl, session, threads);
    }
    Ok(())
}

/// The settings as the engine has them.
struct StartOptions {
    config: SessionConfig,
    /// The timer was not asked for in particular.
    any_timer: bool,
    lines: bool,
    /// `None`: at the tick if that can be.
    capture: Option<Capture>,
    /// Time counts in sections only.
    defer: bool,
}

impl StartOptions {
    fn new(settings: &Settings) -> Self {
        StartOptions {
            config: SessionConfig {
                mode: Mode::from_name(settings.mode()).unwrap_or_default(),
                frequency: settings.frequency(),
                max_overhead: settings.max_overhead(),
                timer: timer_kind(settings.signal()),
                aggregate: settings.aggregate(),
            },
            any_timer: settings.signal().is_none(),
            lines: settings.lines() != Some(false),
            capture: settings.capture().map(|capture| match capture {
                settings::Capture::Tick => Capture::Tick,
                settings::Capture::Safepoint => Capture::Safepoint,
            }),
            defer: settings.defer(),
        }
    }
}

/// Fails if stacks can't be taken at the tick, though they must.
fn begin_capture(gvl: &Gvl<'_>, engine: &mut Session, capture: Option<Capture>) -> io::Result<()> {
    if capture == Some(Capture::Safepoint) {
        return Ok(());
    }
    let begun = if frames::are_known(RubyVm(gvl)) {
        engine.begin_tick_capture()
    } else {
        let message = "the stacks of this Ruby are of an unknown form";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    };
    begun.or_else(|error| match capture {
        Some(_) => Err(error),
        None => Ok(()),
    })
}

/// With the timer asked for. If it was not asked for in particular, and signal
/// timers are used up, with one that sleeps.
fn start_session(config: SessionConfig, any_timer: bool) -> io::Result<Session> {
    let calls = VmCalls {
        trigger: safepoint::trigger,
        take_stack: tick::take_stack,
        take_other_stack: tick::take_stack_of_other,
    };
    Session::start(config, calls).or_else(|error| {
        if !any_timer || config.timer == TimerKind::Sleep {
            return Err(error);
        }
        let timer = TimerKind::Sleep;
        Session::start(SessionConfig { timer, ..config }, calls)
    })
}

fn timer_kind(signal: Option<Signal>) -> TimerKind {
    #[cfg(target_os = "linux")]
    return match signal {
        None => TimerKind::Signal(rperf_engine::default_signal()),
        Some(Signal::Number(number)) => TimerKind::Signal(number),
        Some(Signal::None) => TimerKind::Sleep,
    };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = signal;
        TimerKind::Sleep
    }
}

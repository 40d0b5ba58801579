//! `Native.start`: the start of a session. On a thread of the main Ractor, with the GVL.

use super::{section, trace};
use crate::interrupts::let_others_run;
use crate::profile::errors;
use crate::settings::SettingsObject;
use crate::vm::hooks::{fork, tick};
use crate::vm::state::frames::{self, RubyVm};
use crate::vm::state::live_threads::LiveThreads;
use crate::vm::state::session::{Ending, SESSION, StartedSession, session};
use crate::vm::state::trace::trace_session;
use crate::vm::state::{ractor, safepoint};
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

/// `Native.start(settings)`: begins a session with these `NativeSettings`. Fails if one is
/// running.
pub fn start(ruby: &Ruby, settings: &SettingsObject) -> Result<bool, Error> {
    // SAFETY: a method, on a thread of the main Ractor.
    let mut gvl = unsafe { Gvl::assume_held() };
    while Ending::is_there() {
        let_others_run(&mut gvl)?;
    }
    if settings.0.is_traced() {
        return trace::start(ruby, &mut gvl, &settings.0);
    }
    let others = ractor::are_there_others(ruby, &mut gvl)?;
    let threads = LiveThreads::list(ruby, &mut gvl)?;
    if Ending::is_there() {
        return start(ruby, settings);
    }
    if session(&gvl).is_some() || trace_session(&gvl).is_some() {
        return Err(errors::running_already(ruby));
    }
    let options = StartOptions::new(&settings.0);
    if !fork::remove_inherited_hooks() {
        return Err(errors::forked_elsewhere(ruby));
    }
    let cant_start =
        |error: io::Error| errors::rperf(ruby, format!("can't start profiling: {error}"));
    let mut engine = start_session(options.config, options.any_timer).map_err(cant_start)?;
    // From the look at what runs to here nothing ran Ruby code, and so no other thread.
    if let Err(error) = begin_capture(&gvl, &mut engine, options.capture) {
        engine.abandon();
        let message = format!("can't start profiling with capture: :tick: {error}");
        return Err(errors::rperf(ruby, message));
    }
    let id = SessionId(LAST_ID.fetch_add(1, Relaxed) + 1);
    let shares_native_threads = env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1");
    let (vm, config) = (RubyVm(&gvl), options.config);
    let lines = options.lines;
    let running = RunningSession::new(&vm, engine, id, config, lines, shares_native_threads);
    let session = StartedSession::new(Arc::clone(&settings.0), running);
    for thread in threads.threads().filter(|thread| thread.has_frames()) {
        // Also where a forked child has inherited a state.
        thread.announce(&gvl, &session.new_threads);
    }
    set_other_ractors(others);
    let session = SESSION.put(&gvl, Box::new(session));
    if !options.defer {
        section::begin_only(&gvl, session, &threads);
    }
    Ok(true)
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

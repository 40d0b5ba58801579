//! `Rperf::Native`: the start of a session, and the other methods' names. On a
//! thread of the main Ractor, with the GVL.

use super::alive::Alive;
use super::backtrace::{self, Scratch};
use super::others_ready::OthersReady;
use super::thread_state::NewThreads;
use super::{
    Inner, LIVE, Live, PROCESS, fork, gc_hook, gvl_cell::GvlCell, native_thread, ractor, running,
    sampling_job, section, snapshot, thread_hook, tick_capture,
};
use crate::profile::errors;
use crate::settings::SettingsObject;
use magnus::{Error, Object, RModule, Ruby, function};
use rperf_engine::{Capture, Mode, Session, SessionConfig, TimerKind, VmCalls};
use rperf_session::settings::{self, Settings, Signal};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// The number of the last session.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("start", function!(start, 1))?;
    native.define_singleton_method("stop", function!(snapshot::stop, 0))?;
    native.define_singleton_method("stop_into", function!(snapshot::stop_into, 1))?;
    native.define_singleton_method("snapshot", function!(snapshot::snapshot, 1))?;
    native.define_singleton_method("running?", function!(is_running, 0))?;
    native.define_singleton_method("enter_section", function!(section::enter, 1))?;
    native.define_singleton_method("leave_section", function!(section::leave, 3))?;
    native.define_singleton_method("forking", function!(fork::announce, 1))?;
    native.define_singleton_method("forget_in_child", function!(forget_in_child, 0))?;
    Ok(())
}

fn is_running() -> bool {
    running().is_some()
}

fn forget_in_child() {
    if running().is_none() {
        fork::remove_inherited_hooks();
    }
}

/// `start(settings)`: of a `NativeSettings`.
fn start(ruby: &Ruby, settings: &SettingsObject) -> Result<bool, Error> {
    let other_ractors = ractor::others(ruby)?;
    let alive = Alive::list(ruby)?;
    if running().is_some() {
        let message = "profiling is running already; call Rperf.stop first";
        return Err(errors::rperf(ruby, message));
    }
    let options = StartOptions::new(&settings.0);
    let config = options.config;
    let process = PROCESS
        .get()
        .ok_or_else(|| errors::rperf(ruby, "rperf is not set up"))?;
    if !fork::remove_inherited_hooks() {
        let message = "can't profile in this process: it was forked outside of the main Ractor, \
                       or without the GVL";
        return Err(errors::rperf(ruby, message));
    }
    let cant_start =
        |error: io::Error| errors::rperf(ruby, format!("can't start profiling: {error}"));
    let mut session = start_session(config, options.any_timer).map_err(cant_start)?;
    // From the look at what runs to here nothing ran Ruby code, and so no other thread.
    if let Err(error) = begin_capture(&mut session, options.capture) {
        session.abandon();
        let message = format!("can't start profiling with capture: :tick: {error}");
        return Err(errors::rperf(ruby, message));
    }
    let live: &'static Live = Box::leak(Box::new(Live {
        number: NUMBER.fetch_add(1, Relaxed) + 1,
        mode: config.mode,
        ticks: session.shared_ticks(),
        tick_capture: tick_capture::TickCapture::new(options.lines, config.aggregate),
        inner: GvlCell::new(Inner {
            session,
            threads: Vec::new(),
            scratch: Scratch::new(options.lines),
            gc: gc_hook::GcProgress::default(),
        }),
        shares_native_threads: std::env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1"),
        new_threads: NewThreads::default(),
        others_ready: OthersReady::default(),
        exited_threads: AtomicUsize::new(0),
        sections: section::Sections::default(),
        settings: Arc::clone(&settings.0),
        uses_labels: AtomicBool::new(false),
        quiet: AtomicBool::new(false),
    }));
    for thread in alive
        .threads()
        .filter(|&thread| backtrace::has_frames(thread))
    {
        // Also where a forked child has inherited a state.
        thread_hook::announce(process, live, thread);
    }
    native_thread::set_other_ractors(other_ractors);
    LIVE.store(std::ptr::from_ref(live).cast_mut(), SeqCst);
    if !options.defer {
        section::begin_only(process, live, &alive);
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
fn begin_capture(session: &mut Session, capture: Option<Capture>) -> io::Result<()> {
    if capture == Some(Capture::Safepoint) {
        return Ok(());
    }
    let begun = if tick_capture::knows_frames() {
        session.begin_tick_capture()
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
        trigger: sampling_job::trigger,
        take_stack: tick_capture::take_stack,
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

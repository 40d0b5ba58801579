//! `Rperf::Native`: the start of a session, and the other methods' names. On a
//! thread of the main Ractor, with the GVL. Arguments were checked in Ruby
//! (lib/rperf/options.rb).

use crate::vm::state::live_threads::Alive;
use crate::vm::state::backtrace;
use crate::vm::state::backtrace::{Scratch};
use crate::vm::state::others_ready::OthersReady;
use crate::vm::state::thread_state::NewThreads;
use crate::vm::hooks::fork;
use crate::vm::hooks::gc as gc_hook;
use crate::vm::state::gvl_cell::GvlCell;
use crate::vm::state::native_thread;
use crate::vm::state::ractor;
use crate::vm::hooks::sampling_job;
use crate::vm::api::section;
use crate::vm::api::snapshot;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::recording::tick_capture;
use crate::vm::{Inner, LIVE, Live, PROCESS, running};
use crate::profile::errors;
use magnus::rb_sys::AsRawValue;
use magnus::{
    Error, Object, RHash, RModule, Ruby, Symbol, TryConvert, Value, function,
    prelude::*,
    scan_args::{get_kwargs, scan_args},
};
use rperf_engine::{Capture, Mode, Session, SessionConfig, TimerKind, VmCalls};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// The number of the last session.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("start", function!(start, -1))?;
    native.define_singleton_method("stop", function!(snapshot::stop, 0))?;
    native.define_singleton_method("stop_into", function!(snapshot::stop_into, 1))?;
    native.define_singleton_method("snapshot", function!(snapshot::snapshot, 1))?;
    native.define_singleton_method("running?", function!(is_running, 0))?;
    native.define_singleton_method("enter", function!(scope::enter, 3))?;
    native.define_singleton_method("leave", function!(scope::leave, 1))?;
    native.define_singleton_method("labels", function!(labels::labels, 0))?;
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

fn start(ruby: &Ruby, arguments: &[Value]) -> Result<bool, Error> {
    let other_ractors = ractor::others(ruby)?;
    let alive = Alive::list(ruby)?;
    if running().is_some() {
        let message = "profiling is running already; call Rperf.stop first";
        return Err(errors::rperf(ruby, message));
    }
    let options = StartOptions::read(ruby, arguments)?;
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

/// The arguments of `start`, by name.
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
    fn read(ruby: &Ruby, arguments: &[Value]) -> Result<Self, Error> {
        let arguments = scan_args::<(), (), (), (), RHash, ()>(arguments)?;
        let names = [
            "frequency",
            "mode",
            "signal",
            "aggregate",
            "lines",
            "capture",
            "defer",
        ];
        let given = get_kwargs::<_, Given, (), ()>(arguments.keywords, &names, &[])?;
        let (frequency, mode, signal, aggregate, lines, capture, defer) = given.required;
        let mode = Mode::from_name(&mode.name()?)
            .ok_or_else(|| errors::rperf(ruby, "mode must be :cpu or :wall"))?;
        Ok(StartOptions {
            config: SessionConfig {
                mode,
                frequency,
                timer: timer_kind(signal)?,
                aggregate,
            },
            any_timer: signal.is_nil(),
            lines,
            capture: capture_named(ruby, capture)?,
            defer,
        })
    }
}

/// In the order of the names above.
type Given = (u32, Symbol, Value, bool, bool, Option<Symbol>, bool);

/// Where stacks are to be taken; `None`: at the tick if that can be.
fn capture_named(ruby: &Ruby, given: Option<Symbol>) -> Result<Option<Capture>, Error> {
    let Some(given) = given else {
        return Ok(None);
    };
    match &*given.name()? {
        "tick" => Ok(Some(Capture::Tick)),
        "safepoint" => Ok(Some(Capture::Safepoint)),
        _ => Err(errors::rperf(ruby, "capture must be :tick or :safepoint")),
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

fn timer_kind(signal: Value) -> Result<TimerKind, Error> {
    if !cfg!(target_os = "linux") || signal.as_raw() == rb_sys::Qfalse as rb_sys::VALUE {
        return Ok(TimerKind::Sleep);
    }
    #[cfg(target_os = "linux")]
    if signal.is_nil() {
        return Ok(TimerKind::Signal(rperf_engine::default_signal()));
    }
    #[cfg(target_os = "linux")]
    return Ok(TimerKind::Signal(i32::try_convert(signal)?));
    #[cfg(not(target_os = "linux"))]
    unreachable!("other systems have only the sleep timer")
}

//! `Rperf::Native`: the start of a session, and the other methods' names. On a
//! thread of the main Ractor, with the GVL. Arguments were checked in Ruby
//! (lib/rperf/options.rb).

use super::alive::Alive;
use super::capture::{self, Scratch};
use super::others_ready::OthersReady;
use super::thread_state::NewThreads;
use super::{
    Inner, LIVE, Live, PROCESS, fork, gc_hook, gvl_cell::GvlCell, leaf, native_thread, running,
    sampling_job, section, snapshot, thread_hook,
};
use crate::profile::errors;
use magnus::rb_sys::AsRawValue;
use magnus::{
    Error, Object, RHash, RModule, Ruby, Symbol, TryConvert, Value, function,
    prelude::*,
    scan_args::{get_kwargs, scan_args},
};
use rperf_engine::{Session, SessionConfig, TimerKind, VmCalls};
use rperf_model::Mode;
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

fn start(ruby: &Ruby, arguments: &[Value]) -> Result<bool, Error> {
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
    if options.capture != Some(Capture::Safepoint) {
        let begun = session.interrupt_at_ticks();
        // Where nobody has asked for it, it may be impossible.
        if let (Some(Capture::Tick), Err(error)) = (options.capture, begun) {
            session.abandon();
            let message = format!("can't start profiling with capture: :tick: {error}");
            return Err(errors::rperf(ruby, message));
        }
    }
    let live: &'static Live = Box::leak(Box::new(Live {
        number: NUMBER.fetch_add(1, Relaxed) + 1,
        mode: config.mode,
        ticks: session.shared_ticks(),
        slot: leaf::Slot::new(options.lines),
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
        .filter(|&thread| capture::has_frames(thread))
    {
        // Also where a forked child has inherited a state.
        thread_hook::announce(process, live, thread);
    }
    native_thread::set_other_ractors(options.ractors);
    LIVE.store(std::ptr::from_ref(live).cast_mut(), SeqCst);
    if !options.defer {
        section::begin_only(process, live, &alive);
    }
    Ok(true)
}

/// When a sample's stack is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Capture {
    Tick,
    Safepoint,
}

impl Capture {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "tick" => Some(Capture::Tick),
            "safepoint" => Some(Capture::Safepoint),
            _ => None,
        }
    }
}

/// The arguments of `start`, by name.
struct StartOptions {
    config: SessionConfig,
    /// The timer was not asked for in particular.
    any_timer: bool,
    lines: bool,
    /// `None`: at the tick, where that is possible.
    capture: Option<Capture>,
    /// Time counts in sections only.
    defer: bool,
    /// There are other Ractors than the main one.
    ractors: bool,
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
            "ractors",
        ];
        let given = get_kwargs::<_, Given, (), ()>(arguments.keywords, &names, &[])?;
        let (frequency, mode, signal, aggregate, lines, capture, defer, ractors) = given.required;
        let mode = Mode::from_name(&mode.name()?)
            .ok_or_else(|| errors::rperf(ruby, "mode must be :cpu or :wall"))?;
        let capture = capture
            .map(|name| {
                Capture::from_name(&name.name()?)
                    .ok_or_else(|| errors::rperf(ruby, "capture must be :tick or :safepoint"))
            })
            .transpose()?;
        Ok(StartOptions {
            config: SessionConfig {
                mode,
                frequency,
                timer: timer_kind(signal)?,
                aggregate,
            },
            any_timer: signal.is_nil(),
            lines,
            capture,
            defer,
            ractors,
        })
    }
}

/// In the order of the names above.
type Given = (u32, Symbol, Value, bool, bool, Option<Symbol>, bool, bool);

/// With the timer asked for. If it was not asked for in particular, and signal
/// timers are used up, with one that sleeps.
fn start_session(config: SessionConfig, any_timer: bool) -> io::Result<Session> {
    let calls = VmCalls {
        trigger: sampling_job::trigger,
        take_stack: leaf::take_stack,
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

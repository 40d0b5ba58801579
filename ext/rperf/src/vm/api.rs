//! `Rperf::Native`: start, stop and snapshot. On a thread of the main Ractor,
//! with the GVL. Arguments were checked in Ruby (lib/rperf/options.rb).

use super::capture::{Scratch, VmStack, Whose};
use super::thread_state::NewThreads;
use super::{
    Inner, LIVE, Live, PROCESS, Process, fork, gc_hook, gvl_cell::GvlCell, leaf, native_thread,
    resolve, running_thread, sampling_job, thread_hook,
};
use crate::profile::{self, errors};
use magnus::rb_sys::AsRawValue;
use magnus::{
    Error, Module, Object, RArray, RHash, RModule, Ruby, Symbol, TryConvert, Value, function,
    prelude::*,
    scan_args::{get_kwargs, scan_args},
    value::Lazy,
};
use rb_sys::VALUE;
use rperf_engine::{CapturedNode, Session, SessionConfig, Snapshot, TimerKind, VmCalls, clock};
use rperf_model::Mode;
use std::collections::HashSet;
use std::io;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst,
};

/// Defines the methods.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    Lazy::force(&LIST, ruby);
    native.define_singleton_method("start", function!(start, -1))?;
    native.define_singleton_method("code_is_compiled", function!(code_is_compiled, 0))?;
    native.define_singleton_method("stop", function!(stop, 0))?;
    native.define_singleton_method("snapshot", function!(snapshot, 0))?;
    native.define_singleton_method("running?", function!(is_running, 0))?;
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

fn running() -> Option<&'static Live> {
    // SAFETY: cleared before it is freed, both by `take_down` with the GVL, which
    // the callers of this hold as well.
    unsafe { LIVE.load(Acquire).as_ref() }
}

fn start(ruby: &Ruby, arguments: &[Value]) -> Result<bool, Error> {
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
    let threads = list_threads(ruby)?;
    let cant_start =
        |error: io::Error| errors::rperf(ruby, format!("can't start profiling: {error}"));
    let mut session = start_session(config, options.any_timer).map_err(cant_start)?;
    let leaf = options.leaf;
    if leaf.unwrap_or_else(|| leaf::is_code_compiled(ruby)) {
        let begun = session.interrupt_at_ticks();
        // Where nobody has asked for it, it may be impossible.
        if let (Some(true), Err(error)) = (leaf, begun) {
            session.abandon();
            let message = format!("can't start profiling with leaf: true: {error}");
            return Err(errors::rperf(ruby, message));
        }
    }
    let start_ns = session.start_ns();
    let live = Box::new(Live {
        mode: config.mode,
        ticks: session.shared_ticks(),
        slot: leaf::Slot::new(options.lines),
        leaf_when_compiled: leaf.is_none(),
        inner: GvlCell::new(Inner {
            session,
            threads: Vec::new(),
            scratch: Scratch::new(options.lines),
            gc: gc_hook::GcProgress::default(),
        }),
        shares_native_threads: std::env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1"),
        new_threads: NewThreads::default(),
        exited_threads: AtomicUsize::new(0),
        hooks_paused: AtomicBool::new(false),
        quiet: AtomicBool::new(false),
    });
    begin_threads(process, &live, &threads, start_ns);
    LIVE.store(Box::into_raw(live), SeqCst);
    thread_hook::add(config.mode);
    gc_hook::add();
    Ok(true)
}

/// The arguments of `start`, by name.
struct StartOptions {
    config: SessionConfig,
    /// The timer was not asked for in particular.
    any_timer: bool,
    lines: bool,
    /// `None`: once code is compiled.
    leaf: Option<bool>,
}

impl StartOptions {
    fn read(ruby: &Ruby, arguments: &[Value]) -> Result<Self, Error> {
        let arguments = scan_args::<(), (), (), (), RHash, ()>(arguments)?;
        let (frequency, mode, signal, aggregate, lines, leaf) = get_kwargs::<_, Given, (), ()>(
            arguments.keywords,
            &["frequency", "mode", "signal", "aggregate", "lines", "leaf"],
            &[],
        )?
        .required;
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
            leaf,
        })
    }
}

/// In the order of the names above.
type Given = (u32, Symbol, Value, bool, bool, Option<bool>);

/// YJIT has been enabled: a session that waits for it takes stacks at the tick.
fn code_is_compiled() {
    let Some(live) = running().filter(|live| live.leaf_when_compiled) else {
        return;
    };
    // SAFETY: the GVL is held, and nothing below releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        // If the program handles SIGURG itself, it goes on without.
        let _ = inner.session.interrupt_at_ticks();
    }
}

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

/// All threads that are alive. A program may have its own Thread.list: only what
/// is a Thread counts.
fn list_threads(ruby: &Ruby) -> Result<Vec<Value>, Error> {
    let class = ruby.class_thread();
    let list = ruby.get_inner(&LIST);
    let threads: RArray = list.funcall("call", ())?;
    let threads = threads.into_iter();
    Ok(threads.filter(|thread| thread.is_kind_of(class)).collect())
}

/// Thread.list as it was when the extension was loaded.
static LIST: Lazy<Value> = Lazy::new(|ruby| {
    let list = ruby.class_thread().funcall("method", ("list",));
    list.unwrap_or_else(|_| ruby.qnil().as_value())
});

fn alive_threads(ruby: &Ruby) -> Result<HashSet<VALUE>, Error> {
    let threads = list_threads(ruby)?;
    Ok(threads.into_iter().map(|thread| thread.as_raw()).collect())
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

/// Accounts the threads that are there already: this one runs, the others don't.
fn begin_threads(process: &Process, live: &Live, threads: &[Value], now: u64) {
    // SAFETY: a Ruby thread with the GVL.
    let current = unsafe { rb_sys::rb_thread_current() };
    for thread in threads {
        let thread = thread.as_raw();
        let state = thread_hook::announce(process, live, thread, 0);
        state.is_of_main_ractor(|| true);
        // SAFETY: the GVL is held, and nothing in this loop releases it.
        let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
            continue;
        };
        // SAFETY: the GVL is held and no other reference to the part exists.
        let part = unsafe { state.gvl_part() };
        let is_current = thread == current;
        let cpu = if is_current {
            clock::thread_cpu_ns()
        } else {
            0
        };
        let accounting = part.accounting.insert(inner.session.new_thread(cpu));
        if is_current {
            running_thread::is_here(live, state);
            part.placed = true;
            accounting.begin_running(now);
            if live.ticks.set_holder(accounting.seq(), native_thread::id()) {
                inner.session.arm();
            }
        } else {
            accounting.begin_off_gvl(now);
        }
    }
}

fn stop(ruby: &Ruby) -> Result<Option<Value>, Error> {
    let Some(live) = running() else {
        return Ok(None);
    };
    silence(live);
    let alive = alive_threads(ruby)?;
    let Some(flushed) = flush(live, &alive) else {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    };
    // The frames stay marked as long as the session is live.
    let frames = resolve::resolve_frames(live, flushed.frames);
    let snapshot = take_down(live, &alive)
        .stop(flushed.now)
        .map_err(|error| errors::rperf(ruby, error.to_string()))?;
    wrap(ruby, snapshot, &flushed.nodes, &frames).map(Some)
}

fn snapshot(ruby: &Ruby) -> Result<Option<Value>, Error> {
    let Some(live) = running() else {
        return Ok(None);
    };
    let flushed = flush(live, &alive_threads(ruby)?);
    // SAFETY: the GVL is held, and the worker answers without it.
    let inner = unsafe { live.inner.try_borrow() };
    let (Some(flushed), Some(mut inner)) = (flushed, inner) else {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    };
    let snapshot = inner.session.snapshot(flushed.now);
    drop(inner);
    let snapshot = snapshot.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let frames = resolve::resolve_frames(live, flushed.frames);
    wrap(ruby, snapshot, &flushed.nodes, &frames).map(Some)
}

/// Ends the VM's callbacks: afterwards none runs.
fn silence(live: &Live) {
    // First: the handler relies on the hooks to know who has the GVL.
    // SAFETY: the GVL is held, and nothing in this block releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        inner.session.end_interruptions();
    }
    thread_hook::remove();
    gc_hook::remove();
    live.quiet.store(true, SeqCst);
}

const INSIDE_CALLBACK: &str = "can't read the profile inside one of the VM's callbacks";

/// The state of the call tree when all remainders had been recorded.
struct Flushed {
    now: u64,
    nodes: Vec<CapturedNode>,
    frames: usize,
}

/// Brings every thread up to now and records all remainders. Threads that are
/// not among `alive` have ended, even if their EXITED was missed.
fn flush(live: &Live, alive: &HashSet<VALUE>) -> Option<Flushed> {
    // SAFETY: the GVL is held, and nothing below releases it.
    let mut inner = unsafe { live.inner.try_borrow() }?;
    let now = clock::monotonic_ns();
    sampling_job::fold_exited(live, &mut inner, now);
    // SAFETY: a Ruby thread with the GVL.
    let current = unsafe { rb_sys::rb_thread_current() };
    let Inner {
        session,
        threads,
        scratch,
        ..
    } = &mut *inner;
    for state in threads.iter() {
        if !alive.contains(&state.thread) {
            sampling_job::finish(state, session, scratch, now);
            continue;
        }
        // SAFETY: the GVL is held and no other reference to the part exists.
        let part = unsafe { state.gvl_part() };
        let Some(accounting) = &mut part.accounting else {
            continue;
        };
        let (whose, cpu) = if state.thread == current {
            (Whose::Current(None), Some(clock::thread_cpu_ns()))
        } else {
            let native_id = if live.shares_native_threads {
                0
            } else {
                state.native_id.load(Relaxed)
            };
            (Whose::Other(state.thread), clock::thread_cpu_of(native_id))
        };
        let source = VmStack::new(scratch, whose);
        let mut recorder = session.recorder(now, &mut part.last_stack, 0, source);
        accounting.flush(now, state.ready_ns.load(Relaxed), cpu, &mut recorder);
    }
    session.flush_orphaned(now);
    let tree = session.tree();
    Some(Flushed {
        now,
        nodes: tree.nodes().to_vec(),
        frames: tree.frames().len(),
    })
}

/// Frees the session's bridge side. The hooks have been removed.
fn take_down(live: &'static Live, alive: &HashSet<VALUE>) -> Session {
    let live = ptr::from_ref(live).cast_mut();
    LIVE.store(ptr::null_mut(), SeqCst);
    // SAFETY: it came from `Box::into_raw` in `start`; with the hooks removed, the
    // GVL held and LIVE cleared, nobody else has a reference or can get one.
    let live = unsafe { Box::from_raw(live) };
    let Live {
        inner,
        new_threads,
        hooks_paused,
        ..
    } = *live;
    let Inner {
        session,
        mut threads,
        ..
    } = inner.into_inner();
    new_threads.take_into(&mut threads);
    let missed_exits = hooks_paused.load(Relaxed);
    for state in threads {
        if state.exited.load(Acquire) {
            continue;
        }
        let maybe_gone = if state.is_foreign() {
            missed_exits
        } else {
            !alive.contains(&state.thread)
        };
        if maybe_gone {
            // Its thread is ending or gone, and with it the slot that points here:
            // neither can be touched.
            Box::leak(state);
        } else if let Some(process) = PROCESS.get() {
            thread_hook::clear_slot(process, &state);
        }
    }
    session
}

fn wrap(
    ruby: &Ruby,
    snapshot: Snapshot,
    nodes: &[CapturedNode],
    frames: &[rperf_engine::ResolvedFrame],
) -> Result<Value, Error> {
    let config = snapshot.config;
    let description: Option<String> = ruby
        .class_object()
        .const_get::<_, Value>("RUBY_DESCRIPTION")
        .ok()
        .and_then(resolve::text);
    let comments = vec![
        format!("rperf {}", env!("CARGO_PKG_VERSION")),
        format!(
            "mode: {}, frequency: {} Hz",
            config.mode.name(),
            config.frequency
        ),
        description.unwrap_or_default(),
    ];
    let program = ruby
        .eval::<Value>("$0")
        .ok()
        .and_then(resolve::text)
        .unwrap_or_default();
    profile::wrap(
        ruby,
        snapshot.into_profile(nodes, frames, program, comments),
    )
}

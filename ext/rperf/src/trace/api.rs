//! The begin and the end of a traced session, and what it has counted. On a thread of the main
//! Ractor, with the GVL, outside of hooks.

mod calibration;
pub mod targets;
mod tracing;

pub use tracing::check_none_runs;

use super::hooks;
use super::state::session::{TraceSession, trace_session};
use crate::profile::{self, description, errors};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::{ractor, resolve};
use magnus::{Error, Ruby, Value, prelude::*};
use rperf_engine::trace::{ThreadNumber, TraceClock, TraceLevel};
use rperf_engine::{GC_WATCH, GcMoment, Gvl, set_other_ractors};
use rperf_session::settings::{Clock, Settings};
use std::collections::HashMap;
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Begins a traced session with these settings. Fails if a session is running. Hooks that a fork
/// has left are gone.
pub fn start(ruby: &Ruby, gvl: &mut Gvl<'_>, settings: &Arc<Settings>) -> Result<(), Error> {
    if is_compiler_on(ruby, gvl, "ZJIT")? {
        let message = "calls can't be traced under ZJIT, which doesn't tell of all of them";
        return Err(errors::rperf(ruby, message));
    }
    let (level, clock) = level_and_clock(settings);
    let mut session = TraceSession::new(Arc::clone(settings), level, clock);
    session.calibration = calibration::of(ruby, gvl, settings, level, clock)?;
    session.with_yjit = is_compiler_on(ruby, gvl, "YJIT")?;
    session.counts_objects = settings.measures_objects();
    let others = ractor::are_there_others(ruby, gvl)?;
    session.other_ractors.store(others, Relaxed);
    set_other_ractors(others);
    GC_WATCH.session_begins();
    let threads = LiveThreads::list(ruby, gvl)?;
    tracing::check_none_runs(ruby, gvl)?;
    if let Some(mut tracer) = session.tracer.borrow(gvl) {
        if session.counts_objects {
            tracer.count_objects();
        }
        if settings.measures_cpu() {
            tracer.measure_cpu(GcMoment::now);
        }
    }
    tracing::begin(gvl, session, &threads);
    Ok(())
}

/// What is traced, and by which clock.
fn level_and_clock(settings: &Settings) -> (TraceLevel, TraceClock) {
    let level = TraceLevel {
        c_methods: settings.traces_c_methods(),
        timed: settings.times_calls(),
    };
    let clock = match settings.clock() {
        _ if !level.timed => TraceClock::None,
        Clock::Best => TraceClock::best(),
        Clock::Monotonic => TraceClock::Monotonic,
    };
    (level, clock)
}

/// Whether a compiler of the VM's is on. Runs Ruby code.
fn is_compiler_on(ruby: &Ruby, _: &mut Gvl<'_>, name: &str) -> Result<bool, Error> {
    let vm: Value = ruby.class_object().const_get("RubyVM")?;
    let has_one: bool = vm.funcall("const_defined?", (name,))?;
    if !has_one {
        return Ok(false);
    }
    let compiler: Value = vm.funcall("const_get", (name,))?;
    compiler.funcall("enabled?", ())
}

/// Ends the session; its profile, or nil if there is none.
pub fn stop(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Option<Value>, Error> {
    let others = ractor::are_there_others(ruby, gvl)?;
    let threads = LiveThreads::list(ruby, gvl)?;
    // From here on no Ruby code runs: no interrupt loses the profile, no other thread calls stop.
    let Some(id) = trace_session(gvl).map(TraceSession::id) else {
        return Ok(None);
    };
    // The frames stay marked as long as the session is there.
    hooks::remove();
    let profile = profile_so_far(ruby, gvl, &threads, others, false);
    tracing::end(gvl, id);
    profile
}

/// The profile up to now, which is let go of if `clear`.
pub fn snapshot(ruby: &Ruby, gvl: &mut Gvl<'_>, clear: bool) -> Result<Option<Value>, Error> {
    let others = ractor::are_there_others(ruby, gvl)?;
    let threads = LiveThreads::list(ruby, gvl)?;
    profile_so_far(ruby, gvl, &threads, others, clear)
}

/// The same, without Ruby code. `others`: there are other Ractors.
fn profile_so_far(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    threads: &LiveThreads,
    others: bool,
    clear: bool,
) -> Result<Option<Value>, Error> {
    let Some(session) = trace_session(gvl) else {
        return Ok(None);
    };
    let alive: HashMap<ThreadNumber, u64> = threads
        .threads()
        .filter_map(|it| Some((session.number_of(it)?, session.ready.since(it.id()))))
        .collect();
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        let message = "can't read the trace inside one of the VM's callbacks";
        return Err(errors::rperf(ruby, message));
    };
    let end = session.clock.reading();
    if !session.has_failed() {
        tracer.flush(end.ticks, |number| alive.get(&number).copied());
    }
    let snapshot = tracer.snapshot(end);
    if clear {
        tracer.clear(end);
    }
    drop(tracer);
    let has_others = others || session.other_ractors.load(Relaxed);
    let comments = comments(ruby, session, has_others);
    let (settings, calibration) = (Arc::clone(&session.settings), session.calibration);
    let frame_at = |gvl: &Gvl<'_>, row: usize| {
        let tracer = trace_session(gvl)?.tracer.borrow(gvl)?;
        tracer.frames().get(row).copied()
    };
    let names = resolve::resolve_traced(gvl, frame_at);
    let classes = resolve::resolve_classes(gvl, snapshot.classes());
    let program = description::program();
    let profile = snapshot.into_profile(&names, &classes, &calibration, program, comments);
    profile::wrap(ruby, description::labelled(&settings, profile)).map(Some)
}

fn comments(ruby: &Ruby, session: &TraceSession, has_others: bool) -> Vec<String> {
    let mut comments = description::lines(ruby, "mode: trace".to_owned());
    if session.has_failed() {
        let process = process::id();
        comments.push(format!(
            "traced: process {process}: an internal error ended it early; the numbers are of the time before"
        ));
    }
    if session.with_yjit {
        comments.push("traced: YJIT was on, but code that is traced runs without it".to_owned());
    }
    if has_others {
        comments.push("traced: other Ractors than the main one were not traced".to_owned());
    }
    if hooks::gc::has_missed() {
        comments.push(
            "traced: calls may be missing: Ruby 3.4 tells of nothing more once a Ractor's object is freed"
                .to_owned(),
        );
    }
    comments
}

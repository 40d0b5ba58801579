//! The begin and the end of a traced session, and what it has counted. On a thread of the main
//! Ractor, with the GVL, outside of hooks. As a profile is made, the GVL is held for some
//! milliseconds at a stretch.

mod calibration;
mod excluded;
pub mod section;
mod start;
pub mod targets;

use crate::interrupts::{Interrupts, LIMIT};
use crate::probes::{self, tracing::gc};
use crate::profile::{self, description, errors};
use crate::ruby::compiler;
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::thread_names::{self, ThreadName};
use crate::ruby::version::{self, Lacks};
use crate::ruby::{blocks, frames, ractor, resolve};
use crate::running::tracing::{TraceSession, trace_session};
use crate::running::{self, Kind, Running, roots, running};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use rperf_model::Note;
use rperf_protocol::hello::Beginner;
use rperf_session::settings::{Clock, Settings};
use rperf_tracing::{
    Calibration, ClockReading, ThreadNumber, TraceClock, TraceLevel, TraceSnapshot, TracedFrame,
    Tracer,
};
use rperf_vm::{GcMoment, Gvl, JobId};
use std::collections::HashMap;
use std::path::PathBuf;
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
    let mut session = start::new_session(ruby, level, clock)?;
    let setup = &mut session.setup;
    setup.calibration = calibration::of(ruby, gvl, settings, level, clock)?;
    setup.with_yjit = is_compiler_on(ruby, gvl, "YJIT")?;
    setup.counts_objects = settings.measures_objects();
    set_up(gvl, settings, &session);
    let others = ractor::are_there_others(ruby, gvl)?;
    session.progress.other_ractors.store(others, Relaxed);
    let threads = LiveThreads::list(ruby, gvl)?;
    running::check_none(ruby)?;
    let fiber = ruby.fiber_current().as_raw() as usize;
    running::prepare(others);
    let session = Running::new(settings, Beginner::Program, Kind::Tracing(session));
    if settings.defer() {
        start::begin_deferred(gvl, session);
        return Ok(());
    }
    start::begin(gvl, session, &threads);
    let tracer = trace_session(gvl).and_then(|session| session.tracer.borrow(gvl));
    if let Some(mut tracer) = tracer {
        tracer.name_fiber(fiber);
    }
    Ok(())
}

/// Since when each of the threads that are alive has been ready to run; 0 if it isn't.
fn ready_times(session: &TraceSession, threads: &LiveThreads) -> HashMap<ThreadNumber, u64> {
    let threads = threads.threads();
    threads
        .filter_map(|it| Some((session.number_of(it)?, session.ready.since(it.id()))))
        .collect()
}

/// Notes the names of the threads that are alive. No other thread has run since they were listed.
fn note_names(session: &TraceSession, tracer: &mut Tracer, threads: &LiveThreads) {
    for thread in threads.threads() {
        if let Some(number) = session.number_of(thread) {
            // SAFETY: the threads are the main Ractor's, as this one is.
            tracer.note_name(number, &unsafe { ThreadName::of(thread) });
        }
    }
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
        Clock::Tick => TraceClock::Noted,
    };
    (level, clock)
}

/// Has the session keep and measure, beside calls and their times, what its settings want.
fn set_up(gvl: &Gvl<'_>, settings: &Settings, session: &TraceSession) {
    let Some(mut tracer) = session.tracer.borrow(gvl) else {
        return;
    };
    let setup = &session.setup;
    if let Some(least_ns) = settings.spans_ns() {
        tracer.keep_spans(least_ns, setup.clock.ns_per_tick());
    }
    if let Some(depth) = settings.depth() {
        tracer.limit_depth(depth);
    }
    if settings.measures_latency() {
        tracer.keep_latencies(setup.clock.ns_per_tick());
    }
    if setup.counts_objects {
        tracer.count_objects();
    }
    if settings.measures_cpu() {
        tracer.measure_cpu(GcMoment::now);
    }
}

/// Whether a compiler of the VM's is on. Runs Ruby code.
fn is_compiler_on(ruby: &Ruby, _: &mut Gvl<'_>, name: &str) -> Result<bool, Error> {
    compiler::module(ruby, name).map_or(Ok(false), |it| it.funcall("enabled?", ()))
}

/// Ends the session; its profile, or nil if there is none, and the interrupts that have to wait
/// until it is kept.
pub fn stop(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<Value>, Interrupts), Error> {
    let others = ractor::are_there_others(ruby, gvl)?;
    let threads = LiveThreads::list(ruby, gvl)?;
    // From here on no Ruby code runs until all is taken: no interrupt loses the profile, no other
    // thread calls stop.
    let Some(id) = traced(gvl).map(|(running, _)| running.id) else {
        return Ok(Default::default());
    };
    probes::remove_all();
    let Some(taken) = Taken::of(ruby, gvl, &threads, others, None)? else {
        return Ok(Default::default());
    };
    let session = start::end(gvl, id);
    taken.into_profile(ruby, gvl, session)
}

/// The profile up to now, which is let go of if `clear`, and interrupts as in [`stop`].
pub fn snapshot(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    clear: bool,
) -> Result<(Option<Value>, Interrupts), Error> {
    let others = ractor::are_there_others(ruby, gvl)?;
    let threads = LiveThreads::list(ruby, gvl)?;
    match Taken::of(ruby, gvl, &threads, others, Some(clear))? {
        Some(taken) => taken.into_profile(ruby, gvl, None),
        None => Ok(Default::default()),
    }
}

/// The running session, if it traces the program.
fn traced<'a>(gvl: &'a Gvl<'_>) -> Option<(&'a Running, &'a TraceSession)> {
    let running = running(gvl)?;
    let Kind::Tracing(session) = &running.kind else {
        return None;
    };
    Some((running, &**session))
}

/// All that becomes a profile: it belongs to one call alone, and the session may end.
struct Taken {
    settings: Arc<Settings>,
    /// The directory in which the session began.
    directory: PathBuf,
    calibration: Calibration,
    end: ClockReading,
    /// What was counted; `None` if the session itself has it until its end.
    snapshot: Option<TraceSnapshot>,
    notes: Vec<Note>,
    /// What all calls lack, and why.
    missing: Vec<String>,
    /// The frames, and from `first_class` on the classes of objects.
    frames: Vec<TracedFrame>,
    first_class: usize,
    /// Keeps them alive.
    unnamed: JobId,
}

impl Taken {
    /// What has been counted up to now, without Ruby code. `clear`: whether the session goes on
    /// without it; `None` if it ends. `None` without a session.
    fn of(
        ruby: &Ruby,
        gvl: &Gvl<'_>,
        threads: &LiveThreads,
        others: bool,
        clear: Option<bool>,
    ) -> Result<Option<Self>, Error> {
        let Some((running, session)) = traced(gvl) else {
            return Ok(None);
        };
        let alive = ready_times(session, threads);
        let inside = || {
            let message = "can't read the trace inside one of the VM's callbacks";
            errors::rperf(ruby, message)
        };
        let (setup, progress) = (&session.setup, &session.progress);
        let mut tracer = session.tracer.borrow(gvl).ok_or_else(inside)?;
        note_names(session, &mut tracer, threads);
        let end = setup.clock.reading();
        if !progress.has_failed() {
            tracer.flush(end.ticks, |number| alive.get(&number).copied());
        }
        let snapshot = clear.map(|_| tracer.snapshot(end));
        if clear == Some(true) {
            tracer.clear(end);
        }
        let mut frames = tracer.frames().to_vec();
        let first_class = frames.len();
        let class = |&word: &usize| TracedFrame { word, method: 0 };
        frames.extend(tracer.classes().iter().map(class));
        drop(tracer);
        let unnamed = roots::keep_traced_until_named(gvl, &frames);
        let has_others = others || progress.other_ractors.load(Relaxed);
        Ok(Some(Self {
            settings: Arc::clone(&running.settings),
            directory: setup.directory.clone(),
            calibration: setup.calibration,
            end,
            snapshot,
            notes: notes(ruby, session, has_others),
            missing: missing(),
            frames,
            first_class,
            unnamed: unnamed.ok_or_else(inside)?,
        }))
    }

    /// The profile. Frames and classes get their names while other threads run in between; the rest is done
    /// without the GVL. `session`: the one that this is of, if it is over. No profile in a child
    /// that a handler of a signal has forked: it is the parent's.
    fn into_profile(
        self,
        ruby: &Ruby,
        gvl: &mut Gvl<'_>,
        session: Option<Box<Running>>,
    ) -> Result<(Option<Value>, Interrupts), Error> {
        let process = process::id();
        let mut interrupts = Interrupts::default();
        let mut names = Vec::with_capacity(self.frames.len());
        while resolve::name_traced(gvl, LIMIT, &self.frames, &mut names) {
            interrupts.let_others_run(gvl);
            if process != process::id() {
                // Nothing keeps the frames alive there.
                return Ok((None, interrupts));
            }
        }
        roots::take_named(gvl, self.unnamed);
        let program = description::program();
        let profile = interrupts.without_gvl(gvl, move || {
            let of_session = |it: Box<Running>| match it.kind {
                Kind::Tracing(it) => Some(it.tracer.into_inner().into_snapshot(self.end)),
                _ => None,
            };
            let snapshot = self.snapshot.or_else(|| session.and_then(of_session))?;
            let (names, classes) = names.split_at(self.first_class);
            let (calibration, mut notes) = (&self.calibration, self.notes);
            let excluded = excluded::find(&self.settings, &self.directory, names, &mut notes);
            let mut profile =
                snapshot.into_profile(names, &excluded, classes, calibration, program, notes);
            profile.meta.missing = self.missing;
            Some(description::described(&self.settings, profile))
        });
        match profile {
            Some(profile) if process == process::id() => {
                Ok((Some(profile::wrap(ruby, profile)?), interrupts))
            }
            _ => Ok((None, interrupts)),
        }
    }
}

fn notes(ruby: &Ruby, session: &TraceSession, has_others: bool) -> Vec<Note> {
    let mut notes = description::notes(ruby, "mode: trace".to_owned());
    if session.progress.has_failed() {
        notes.push(Note::traced_here(
            "an internal error ended it early; the numbers are of the time before",
        ));
    }
    if session.setup.with_yjit {
        notes.push(Note::traced(
            "YJIT was on, but code that is traced runs without it",
        ));
    }
    if has_others {
        notes.push(Note::traced(
            "other Ractors than the main one were not traced",
        ));
    }
    if gc::HOOK.has_missed() {
        notes.push(Note::traced(version::NOTE_ON_SILENT_CALLS));
    }
    notes
}

/// What all calls lack, and why, for people.
fn missing() -> Vec<String> {
    version::missing([
        (Lacks::BlockMethods, frames::unknown_kinds()),
        (Lacks::Blocks, blocks::unknown()),
        (Lacks::ThreadNames, thread_names::unknown()),
    ])
}

//! The start of a sampling session. On a thread of the main Ractor, with the GVL.

use super::section;
use crate::probes::sampling::{ended_ractors, gc_cost, objects_in_use};
use crate::profile::errors;
use crate::ruby::frames::{Interrupted, RubyVm};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::weak_map::WeakMap;
use crate::ruby::{safepoint, threads, version};
use crate::running::sampling::{SamplingSession, sampling};
use crate::running::session_sums::SessionSums;
use crate::running::{self, Kind, Running, roots};
use magnus::{Error, Ruby};
use rperf_protocol::hello::Beginner;
use rperf_sampling::{Capture, RunningSession, SessionConfig, StartOptions, TimerKind};
use rperf_session::settings::{self, Settings, Signal};
use rperf_vm::Gvl;
use std::sync::Arc;

/// Begins a session with these settings, which samples. None is running, and hooks that a fork has left
/// are gone. `others`: there are other Ractors. Runs no Ruby code, and so lets no other thread run.
pub fn begin(
    ruby: &Ruby,
    gvl: &Gvl<'_>,
    settings: &Arc<Settings>,
    threads: &LiveThreads,
    others: bool,
    beginner: Beginner,
) -> Result<(), Error> {
    let followed_in = match settings.follows_objects() {
        true => Some(WeakMap::new(gvl).ok_or_else(|| cannot_follow(ruby))?),
        false => None,
    };
    if settings.samples_objects() && version::slot_size().is_none() {
        return Err(cannot_sample(ruby));
    }
    if settings.shares_gc() && !gc_cost::prepare() {
        return Err(cannot_share(ruby));
    }
    running::prepare(others);
    let vm = RubyVm::new(gvl);
    let running = RunningSession::start::<RubyVm<Interrupted>>(
        &vm,
        gvl,
        safepoint::trigger,
        options(settings),
    );
    let running = running.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let sums = SessionSums::new(settings, followed_in);
    let session = SamplingSession::new(running, sums);
    if settings.shares_gc() {
        session.gc.unshared.begin();
    }
    objects_in_use::begin();
    if followed_in.is_some() {
        session.ticks.at_each(objects_in_use::at_tick);
    }
    for thread in threads.threads().filter(|thread| thread.has_frames()) {
        // Also where a forked child has inherited a state.
        thread.announce(gvl, &session.turnover.new);
    }
    let session = Kind::Sampling(Box::new(session));
    running::begin(gvl, Running::new(settings, beginner, session));
    if let Some(map) = followed_in {
        roots::keep_map_alive(map);
    }
    if !settings.defer()
        && let Some(session) = sampling(gvl)
    {
        section::begin_only(gvl, session, threads);
    }
    Ok(())
}

#[cold]
fn cannot_sample(ruby: &Ruby) -> Error {
    let message = "this Ruby doesn't tell the sizes of objects, which are needed to sample them: count \
                   them with measure: :alloc, or leave them out";
    errors::rperf(ruby, message)
}

#[cold]
fn cannot_share(ruby: &Ruby) -> Error {
    let message = "this Ruby doesn't tell why it collects garbage, or how many objects it marks, which measure: \
                   :gc_cost needs: leave it out";
    errors::rperf(ruby, message)
}

#[cold]
fn cannot_follow(ruby: &Ruby) -> Error {
    let message = "this Ruby has no ObjectSpace::WeakMap as this rperf knows it, with its own methods []=, [] \
                   and keys, which measure: :heap needs: load rperf before what redefines them, or leave \
                   it out";
    errors::rperf(ruby, message)
}

/// The settings as the engine has them.
fn options(settings: &Settings) -> StartOptions {
    StartOptions {
        config: SessionConfig {
            mode: settings.mode().sampling().unwrap_or_default(),
            blames: settings.measures_blame(),
            judges: settings.measures_requests(),
            frequency: settings.frequency(),
            max_overhead: settings.max_overhead(),
            max_nodes: settings.max_nodes(),
            timer: timer_kind(settings.signal()),
            aggregate: settings.aggregate(),
        },
        any_timer: settings.signal().is_none(),
        lines: settings.lines() != Some(false),
        capture: settings.capture().map(|capture| match capture {
            settings::Capture::Tick => Capture::Tick,
            settings::Capture::Safepoint => Capture::Safepoint,
        }),
        shares_native_threads: threads::shares_native_threads(),
        on_ended_threads: Some(ended_ractors::note),
    }
}

fn timer_kind(signal: Option<Signal>) -> TimerKind {
    #[cfg(target_os = "linux")]
    return match signal {
        None => TimerKind::Signal(rperf_sampling::default_signal()),
        Some(Signal::Number(number)) => TimerKind::Signal(number),
        Some(Signal::None) => TimerKind::Sleep,
    };
    #[cfg(not(target_os = "linux"))]
    {
        let _ = signal;
        TimerKind::Sleep
    }
}

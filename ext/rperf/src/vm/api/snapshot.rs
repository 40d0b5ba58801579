//! `Native.stop` and `Native.snapshot`: what a session has collected. On a thread of
//! the main Ractor, with the GVL; what gathers the samples lets no other thread run.

use crate::profile::{self, errors};
use crate::text;
use crate::vm::hooks;
use crate::vm::recording::{epoch, sample};
use crate::vm::state::label_cache;
use crate::vm::state::live_threads::LiveThreads;
use crate::vm::state::session::{SESSION, session};
use crate::vm::state::threads::RubyThread;
use magnus::rb_sys::FromRawValue;
use magnus::{Error, RArray, Ruby, Value, prelude::*};
use rperf_engine::{
    AtWork, Capture, CapturedNode, Gvl, ResolvedFrame, RunningSession, Session, SessionId, Snapshot,
};
use rperf_session::settings::{self as table, Settings};
use std::sync::Arc;

const INSIDE_CALLBACK: &str = "can't read the profile inside one of the VM's callbacks";

/// `Native.stop`: ends the session; its profile, or nil if there is none.
pub fn stop(ruby: &Ruby) -> Result<Option<Value>, Error> {
    // SAFETY: a method, on a thread of the main Ractor.
    let mut gvl = unsafe { Gvl::assume_held() };
    let inside_callback = || errors::rperf(ruby, INSIDE_CALLBACK);
    let threads = threads_of_session(ruby, &mut gvl)?;
    let (Some(threads), Some(session)) = (threads, session(&gvl)) else {
        return Ok(None);
    };
    // Stop the interrupts before the hooks go: their handler learns the GVL's holder from
    // the hooks.
    if let Some(mut state) = session.state(&gvl) {
        state.engine.end_tick_capture();
    }
    hooks::remove_all();
    session.end();
    let id = session.id;
    let now = flush(&gvl, session, &threads).ok_or_else(inside_callback)?;
    // The frames stay marked as long as the session is in its slot.
    let (nodes, frames) = present_tree(&mut gvl);
    let (settings, engine) = take_down(&mut gvl, id, &threads).ok_or_else(inside_callback)?;
    label_cache::clear(ruby)?;
    let snapshot = engine.stop(now);
    let snapshot = snapshot.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    wrap(ruby, &settings, snapshot, &nodes, &frames).map(Some)
}

/// `Native.stop_into(array)`: as `stop`, but pushes the profile. A method of C can be
/// interrupted as it returns, and then nobody gets what it returns.
pub fn stop_into(ruby: &Ruby, array: RArray) -> Result<(), Error> {
    match stop(ruby)? {
        Some(profile) => array.push(profile),
        None => Ok(()),
    }
}

/// `Native.snapshot(clear)`: the profile up to now, which is let go of if `clear`; or
/// nil without a session.
pub fn snapshot(ruby: &Ruby, clear: bool) -> Result<Option<Value>, Error> {
    // SAFETY: a method, on a thread of the main Ractor.
    let mut gvl = unsafe { Gvl::assume_held() };
    let threads = threads_of_session(ruby, &mut gvl)?;
    let (Some(threads), Some(session)) = (threads, session(&gvl)) else {
        return Ok(None);
    };
    let settings = Arc::clone(&session.settings);
    let now = flush(&gvl, session, &threads);
    let state = session
        .state(&gvl)
        .filter(|state| !state.engine.is_ending());
    let (Some(now), Some(mut state)) = (now, state) else {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    };
    let snapshot = if clear {
        let threads = state.accounted_threads(&gvl);
        let snapshot = state.engine.begin_clear(now, threads as u32);
        state.forget_points(&gvl);
        session.forget_learned(&AtWork::begin(&gvl));
        snapshot
    } else {
        state.engine.snapshot(now)
    };
    drop(state);
    let snapshot = snapshot.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let (nodes, frames) = if clear {
        cleared_tree(&mut gvl)
    } else {
        present_tree(&mut gvl)
    };
    wrap(ruby, &settings, snapshot, &nodes, &frames).map(Some)
}

/// The threads that are alive, if a session runs. Runs Ruby code.
fn threads_of_session(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Option<LiveThreads>, Error> {
    match session(gvl) {
        Some(_) => LiveThreads::list(ruby, gvl).map(Some),
        None => Ok(None),
    }
}

/// Brings every thread up to now, which is returned, and records all remainders.
/// `None` if this runs inside a callback.
fn flush(gvl: &Gvl<'_>, session: &RunningSession, threads: &LiveThreads) -> Option<u64> {
    // A tick from here on would come before the time that all threads are brought up to.
    let guard = AtWork::begin(gvl);
    sample::drain_ticks(gvl, session, &guard);
    let current = RubyThread::current(gvl).id();
    let threads = session.flush(gvl, current, |thread| threads.lacks(gvl, thread))?;
    let now = threads.now_ns;
    threads.for_each(|wanted| sample::record(gvl, session, wanted));
    Some(now)
}

/// The present epoch's nodes and the names of its frames.
fn present_tree(gvl: &mut Gvl<'_>) -> (Vec<CapturedNode>, Vec<ResolvedFrame>) {
    with_engine(gvl, |id, engine| (id, engine.tree().nodes().to_vec()))
        .map(|(id, nodes)| {
            let frame_at = |engine: &Session, row| engine.tree().frames().get(row).copied();
            (nodes, epoch::resolve_frames(gvl, id, frame_at))
        })
        .unwrap_or_default()
}

/// The nodes of what was cleared, and the names of its frames, which are let go.
fn cleared_tree(gvl: &mut Gvl<'_>) -> (Vec<CapturedNode>, Vec<ResolvedFrame>) {
    let Some(id) = with_engine(gvl, |id, _| id) else {
        return Default::default();
    };
    let frames = epoch::resolve_frames(gvl, id, Session::ending_frame);
    let end = |present, engine: &mut Session| (present == id).then(|| engine.end_clear());
    let nodes = with_engine(gvl, end).flatten();
    (nodes.unwrap_or_default(), frames)
}

/// What `act` does with the running session.
fn with_engine<T>(gvl: &Gvl<'_>, act: impl FnOnce(SessionId, &mut Session) -> T) -> Option<T> {
    let session = session(gvl)?;
    Some(act(session.id, &mut session.state(gvl)?.engine))
}

/// Frees the bridge side of the session `id`, whose hooks have been removed. `None` if another
/// thread has ended it.
fn take_down(
    gvl: &mut Gvl<'_>,
    id: SessionId,
    alive: &LiveThreads,
) -> Option<(Arc<Settings>, Session)> {
    session(gvl).filter(|session| session.id == id)?;
    // SAFETY: the hooks and the handler of this session have been removed.
    let session = unsafe { SESSION.take(gvl) }?;
    let (settings, engine, threads) = session.into_parts();
    for state in threads {
        // The slot of a thread that is ending or gone still points here: it can't be touched.
        if !state.end.has_come() && !alive.forget_state(gvl, &state) {
            Box::leak(state);
        }
    }
    Some((settings, engine))
}

/// The profile as a Ruby object, with what is to be said of the whole run.
fn wrap(
    ruby: &Ruby,
    settings: &Settings,
    snapshot: Snapshot,
    nodes: &[CapturedNode],
    frames: &[ResolvedFrame],
) -> Result<Value, Error> {
    let description: Option<String> = ruby
        .class_object()
        .const_get::<_, Value>("RUBY_DESCRIPTION")
        .ok()
        .and_then(text::of_string);
    let comments = vec![
        format!("rperf {}", env!("CARGO_PKG_VERSION")),
        format!(
            "mode: {}, frequency: {} Hz",
            settings.mode(),
            settings.frequency()
        ),
        description.unwrap_or_default(),
        match snapshot.capture {
            Capture::Tick => "capture: tick".to_owned(),
            Capture::Safepoint => "capture: safepoint (methods that reach one soon get the time \
                                   of others, and each tick interrupts compiled code)"
                .to_owned(),
        },
    ];
    // SAFETY: only looks a variable up: an interrupt that came meanwhile isn't met here,
    // where it would be lost.
    let program = unsafe { Value::from_raw(rb_sys::rb_gv_get(c"$0".as_ptr())) };
    let program = text::of_string(program).unwrap_or_default();
    let mut profile = snapshot.into_profile(nodes, frames, program, comments);
    if let Some(table::Value::Labels(labels)) = settings.get(&table::LABELS) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        profile.label_rest(&labels);
    }
    profile::wrap(ruby, profile)
}

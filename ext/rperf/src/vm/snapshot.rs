//! `Native.stop` and `Native.snapshot`: what a session has collected. On a thread of
//! the main Ractor, with the GVL; what gathers the samples lets no other thread run.

use super::alive::Alive;
use super::tick_guard::AtWork;
use super::{
    Inner, LIVE, Live, PROCESS, Process, epoch, resolve, running, running_thread, sampling_job,
    section, thread_hook, tick_capture,
};
use crate::profile::{self, errors};
use magnus::rb_sys::FromRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use rperf_engine::{Capture, CapturedNode, ResolvedFrame, Session, Snapshot, clock};
use rperf_session::settings::{self as table, Settings};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering::Acquire, Ordering::SeqCst};

const INSIDE_CALLBACK: &str = "can't read the profile inside one of the VM's callbacks";

/// `Native.stop`: ends the session; its profile, or nil if there is none.
pub fn stop(ruby: &Ruby) -> Result<Option<Value>, Error> {
    let Some((process, live, alive)) = running_with_threads(ruby)? else {
        return Ok(None);
    };
    // First: the handler learns from the hooks who has the GVL.
    // SAFETY: the GVL is held, and nothing in this block releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        inner.session.end_tick_capture();
    }
    section::remove_hooks();
    live.quiet.store(true, SeqCst);
    let Some(now) = flush(process, live, &alive) else {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    };
    // The frames stay marked as long as the session is live.
    let (nodes, frames) = present_tree(live);
    let settings = Arc::clone(&live.settings);
    let snapshot = take_down(process, live, &alive)
        .stop(now)
        .map_err(|error| errors::rperf(ruby, error.to_string()))?;
    wrap(ruby, &settings, snapshot, &nodes, &frames).map(Some)
}

/// `Native.stop_into(array)`: as `stop`, but pushes the profile. A method of C can be
/// interrupted as it returns, and then nobody gets what it returns.
pub fn stop_into(ruby: &Ruby, array: magnus::RArray) -> Result<(), Error> {
    match stop(ruby)? {
        Some(profile) => array.push(profile),
        None => Ok(()),
    }
}

/// `Native.snapshot(clear)`: the profile up to now, which is let go of if `clear`; or
/// nil without a session.
pub fn snapshot(ruby: &Ruby, clear: bool) -> Result<Option<Value>, Error> {
    let Some((process, live, alive)) = running_with_threads(ruby)? else {
        return Ok(None);
    };
    let now = flush(process, live, &alive);
    // SAFETY: the GVL is held, and the worker answers without it.
    let inner = unsafe { live.inner.try_borrow() };
    let (Some(now), Some(mut inner)) = (now, inner) else {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    };
    if inner.session.is_ending() {
        return Err(errors::rperf(ruby, INSIDE_CALLBACK));
    }
    let snapshot = if clear {
        let counted = |state: &&Box<_>| has_accounting(state);
        let threads = inner.threads.iter().filter(counted).count();
        let snapshot = inner.session.begin_clear(now, threads as u32);
        epoch::forget_places(&inner);
        live.tick_capture.forget_learned(&AtWork::begin());
        snapshot
    } else {
        inner.session.snapshot(now)
    };
    drop(inner);
    let snapshot = snapshot.map_err(|error| errors::rperf(ruby, error.to_string()))?;
    let (nodes, frames) = if clear {
        cleared_tree(live)
    } else {
        present_tree(live)
    };
    wrap(ruby, &live.settings, snapshot, &nodes, &frames).map(Some)
}

/// The running session, and the threads that are alive.
fn running_with_threads(
    ruby: &Ruby,
) -> Result<Option<(&'static Process, &'static Live, Alive)>, Error> {
    if running().is_none() {
        return Ok(None);
    }
    let alive = Alive::list(ruby)?;
    let session = PROCESS.get().zip(running());
    Ok(session.map(|(process, live)| (process, live, alive)))
}

fn has_accounting(state: &super::thread_state::ThreadState) -> bool {
    // SAFETY: the GVL is held, as the session is borrowed, and no other reference to
    // the part exists.
    unsafe { state.gvl_part() }.accounting.is_some()
}

/// Brings every thread up to now, which is returned, and records all remainders.
/// `None` if this runs inside a callback.
fn flush(process: &Process, live: &Live, alive: &Alive) -> Option<u64> {
    let guard = AtWork::begin();
    tick_capture::drain_current(process, live, &guard);
    // SAFETY: the GVL is held, and nothing below releases it.
    let mut inner = unsafe { live.inner.try_borrow() }?;
    let now = clock::monotonic_ns();
    sampling_job::fold_exited(live, &mut inner, now);
    sampling_job::fold_ended(&mut inner, now, |state| alive.lacks(process, state));
    sampling_job::for_each_thread(
        live,
        &mut inner,
        now,
        |_| true,
        |thread| {
            // Between sections no time counts, CPU time neither.
            let is_open = live.sections.are_open();
            let cpu = || running_thread::cpu_clock(live, thread.state, thread.is_current);
            let cpu = is_open.then(cpu).flatten();
            let ready = running_thread::ready_since(live, thread.state);
            thread.accounting.flush(now, ready, cpu, thread.recorder);
        },
    );
    let session = &mut inner.session;
    session.flush_orphaned(now);
    Some(now)
}

/// The present epoch's nodes and the names of its frames.
fn present_tree(live: &Live) -> (Vec<CapturedNode>, Vec<ResolvedFrame>) {
    // SAFETY: the GVL is held; the borrow ends with this statement.
    let nodes = unsafe { live.inner.try_borrow() }
        .map_or_else(Vec::new, |inner| inner.session.tree().nodes().to_vec());
    let frames = resolve::resolve_all(|row| {
        // SAFETY: the GVL is held; the borrow ends with this closure.
        let inner = unsafe { live.inner.try_borrow() }?;
        inner.session.tree().frames().get(row).copied()
    });
    (nodes, frames)
}

/// The nodes of what was cleared, and the names of its frames, which are let go.
fn cleared_tree(live: &Live) -> (Vec<CapturedNode>, Vec<ResolvedFrame>) {
    let frames = resolve::resolve_all(|row| {
        // SAFETY: the GVL is held; the borrow ends with this closure.
        let inner = unsafe { live.inner.try_borrow() }?;
        inner.session.ending_frame(row)
    });
    // SAFETY: the GVL is held; the borrow ends with this statement.
    let nodes = unsafe { live.inner.try_borrow() }
        .map_or_else(Vec::new, |mut inner| inner.session.end_clear());
    (nodes, frames)
}

/// Frees the session's bridge side. The hooks have been removed.
fn take_down(process: &Process, live: &'static Live, alive: &Alive) -> Session {
    let live = ptr::from_ref(live).cast_mut();
    LIVE.store(ptr::null_mut(), SeqCst);
    // SAFETY: it came from `Box::leak` in `start`; with the hooks removed, the
    // GVL held and LIVE cleared, nobody else has a reference or can get one.
    let live = unsafe { Box::from_raw(live) };
    let Live {
        inner, new_threads, ..
    } = *live;
    let Inner {
        session,
        mut threads,
        ..
    } = inner.into_inner();
    new_threads.take_into(&mut threads);
    for state in threads {
        if state.exited.load(Acquire) {
            continue;
        }
        if alive.has(process, &state) {
            thread_hook::clear_slot(process, &state);
        } else {
            // Its thread is ending or gone, and with it the slot that points here:
            // neither can be touched.
            Box::leak(state);
        }
    }
    session
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
        .and_then(resolve::text);
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
    let program = resolve::text(program).unwrap_or_default();
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

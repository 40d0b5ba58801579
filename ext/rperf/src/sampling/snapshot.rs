//! `Native.stop` and `Native.snapshot` of a sampling session: what it has collected. On a thread of
//! the main Ractor, with the GVL, which others get in between: it is held for some milliseconds
//! at a stretch, however much there is.
//!
//! 1. All threads are brought up to now. If that takes long, other threads run in between, and in
//!    the end all are brought up to one moment once more, which is quick then.
//! 2. At that moment everything is taken from the session, and belongs to this call alone. Other
//!    threads may stop the session, start another or take snapshots of their own.
//! 3. Without the GVL, the worker's reply is waited for. With it, the frames get their names; other
//!    threads run in between. Without it, the profile is made.
//!
//! Until everything is taken, interrupts take effect at once; afterwards they wait.

use super::taken_profile::{Finish, TakenFrames, TakenProfile};
use crate::interrupts::{Interrupts, LIMIT, let_others_run, without_gvl_if_possible};
use crate::probes;
use crate::probes::sampling::gc_cost;
use crate::probes::sampling::objects_in_use::{self, Look};
use crate::profile::errors;
use crate::recording::{epoch, sample};
use crate::ruby::live_threads::LiveThreads;
use crate::ruby::thread_names::ThreadName;
use crate::ruby::threads::RubyThread;
use crate::running::roots;
use crate::running::sampling::{Ending, SamplingSession, sampling};
use crate::running::session_sums::TakenSums;
use crate::running::{self, Kind, running};
use crate::without_gvl::without_gvl;
use magnus::{Error, Ruby, Value};
use rperf_sampling::threads::ThreadState;
use rperf_sampling::{AtWork, Session};
use rperf_session::settings::Settings;
use rperf_vm::{CapturedNode, Gvl, SessionId};
use std::sync::Arc;

const INSIDE_CALLBACK: &str = "can't read the profile inside one of the VM's callbacks";

/// Ends the session; its profile, or nothing if there is none, and the interrupts that have to
/// wait until it is kept. `finish` takes what else belongs to the profile; it runs no Ruby code.
pub fn stop(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    finish: impl FnOnce(&mut Gvl<'_>) -> Result<Option<Finish>, Error>,
) -> Result<(Option<Value>, Interrupts), Error> {
    let looked = objects_in_use::look_now(gvl);
    let Some((id, now, threads)) = bring_up(ruby, gvl, u64::MAX)? else {
        return Ok(Default::default());
    };
    if let Some(session) = sampling(gvl) {
        // Stop the interrupts before the hooks go: their handler learns the GVL's holder from
        // the hooks.
        if let Some(mut state) = session.state(gvl) {
            state.engine.end_tick_capture();
        }
        probes::remove_all();
        session.end();
        // Nobody tells the timer any more who runs, and to name methods takes time.
        session.ticks.pause();
    }
    let finish = finish(gvl);
    // Requests that go on don't end in this session: what belongs to them is told now.
    let sums = sampling(gvl).map(|session| take_sums(gvl, session, looked, false));
    // No collection runs until the frames are kept alive again.
    let ending = Ending::begin();
    let Some((settings, engine)) = take_down(gvl, id, &threads) else {
        return Ok(Default::default());
    };
    let sums = sums.unwrap_or_default();
    let mut taken = TakenProfile::keep(ruby, gvl, settings, engine.stop(now), sums)?;
    taken.finish = finish?;
    // No interrupt takes effect until the worker has ended: what it ran could begin a session.
    let complete = taken.complete(ruby, gvl, |_, wait| without_gvl(wait))?;
    drop(ending);
    match complete {
        Some(complete) => complete.into_profile(ruby, gvl, Interrupts::default()),
        None => Ok(Default::default()),
    }
}

/// The profile up to now, which is let go of if `clear`, and interrupts; nothing without a session.
/// `finish` as in [`stop`].
pub fn snapshot(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    clear: bool,
    finish: impl FnOnce(&mut Gvl<'_>) -> Result<Option<Finish>, Error>,
) -> Result<(Option<Value>, Interrupts), Error> {
    let room = if clear {
        Vec::new()
    } else {
        room_for_nodes(gvl)?
    };
    let looked = objects_in_use::look_now(gvl);
    let Some((_, now, _)) = bring_up(ruby, gvl, LIMIT.as_nanos() as u64)? else {
        return Ok(Default::default());
    };
    let (Some(session), Some(running)) = (sampling(gvl), running(gvl)) else {
        return Ok(Default::default());
    };
    let settings = Arc::clone(&running.settings);
    let (taken, tree) = if clear {
        (take_all(gvl, session, now), None)
    } else {
        let tree = tree(gvl, session);
        (take_copy(gvl, session, now, room), tree)
    };
    let taken = taken.ok_or_else(|| errors::rperf(ruby, INSIDE_CALLBACK))?;
    let sums = take_sums(gvl, session, looked, clear);
    let taken = TakenProfile::keep(ruby, gvl, settings, taken, sums);
    let finish = finish(gvl);
    let mut taken = taken?;
    taken.tree = tree;
    taken.finish = finish?;
    let mut interrupts = Interrupts::default();
    let complete = taken.complete(ruby, gvl, |gvl, wait| interrupts.without_gvl(gvl, wait))?;
    match complete {
        Some(complete) => complete.into_profile(ruby, gvl, interrupts),
        None => Ok((None, interrupts)),
    }
}

/// Brings all threads up to now and records all remainders: to one moment, which is returned with
/// the session's id and the threads that are alive, if that takes `limit_ns` at most. The threads
/// for which there is no time are up to a moment ago. From the last of them on, no other thread
/// has run. `None` without a session, or if it ends meanwhile. Runs Ruby code.
fn bring_up(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    limit_ns: u64,
) -> Result<Option<(SessionId, u64, LiveThreads)>, Error> {
    let Some(id) = sampling(gvl).map(|session| session.id) else {
        return Ok(None);
    };
    let slice_ns = LIMIT.as_nanos() as u64;
    let (mut from, mut is_second) = (Rows::FIRST, false);
    loop {
        while epoch::name_frames(gvl, LIMIT) {
            let_others_run(gvl)?;
        }
        let threads = LiveThreads::list(ruby, gvl)?;
        let Some(session) = sampling(gvl).filter(|session| session.id == id) else {
            return Ok(None);
        };
        // The sampling callback has begun to end an epoch just now.
        if is_ending(gvl, session) {
            continue;
        }
        let limit_ns = if is_second { limit_ns } else { slice_ns };
        let (now, next) = flush(gvl, session, &threads, from, limit_ns)
            .ok_or_else(|| errors::rperf(ruby, INSIDE_CALLBACK))?;
        match next {
            Some(next) if !is_second => from = next,
            None if from != Rows::FIRST => (from, is_second) = (Rows::FIRST, true),
            _ => return Ok(Some((id, now, threads))),
        }
        let_others_run(gvl)?;
    }
}

/// Where a pass over all threads goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rows {
    main_ractor: usize,
    others: usize,
}

impl Rows {
    const FIRST: Rows = Rows {
        main_ractor: 0,
        others: 0,
    };

    /// After the last ones.
    const END: usize = usize::MAX;
}

/// Brings threads up to now, which is returned, and records all remainders: those `from` a row
/// on, for so many nanoseconds. The rows of the first for which there was no time come with it.
/// `None` if this runs inside a callback.
fn flush(
    gvl: &Gvl<'_>,
    session: &SamplingSession,
    threads: &LiveThreads,
    from: Rows,
    limit_ns: u64,
) -> Option<(u64, Option<Rows>)> {
    // A tick from here on would come before the time that all threads are brought up to.
    let guard = AtWork::begin(gvl);
    sample::drain_ticks(gvl, session, &guard);
    note_names(gvl, session, threads);
    let current = RubyThread::current(gvl).id();
    let lacks = |thread: &ThreadState| threads.lacks(gvl, thread);
    let mut threads = session.flush(gvl, current, lacks, from.main_ractor, limit_ns)?;
    let now = threads.now_ns;
    for wanted in threads.by_ref() {
        sample::record(gvl, session, wanted);
    }
    let until_ns = now.saturating_add(limit_ns);
    let (frames, others) = session.add_others(gvl, now, from.others, until_ns);
    roots::keep_alive(&frames);
    let next = match (threads.next_row(), others) {
        (None, None) => None,
        (main_ractor, others) => Some(Rows {
            main_ractor: main_ractor.unwrap_or(Rows::END),
            others: others.unwrap_or(Rows::END),
        }),
    };
    Some((now, next))
}

/// Notes the names of all threads that are alive. No other thread has run since they were listed.
fn note_names(gvl: &Gvl<'_>, session: &SamplingSession, threads: &LiveThreads) {
    for thread in threads.threads() {
        if let Some(state) = thread.known_state(gvl) {
            // SAFETY: the threads are the main Ractor's, as this one is.
            let name = unsafe { ThreadName::of(thread) };
            session.note_name(gvl, state, &name);
        }
    }
}

fn is_ending(gvl: &Gvl<'_>, session: &SamplingSession) -> bool {
    let state = session.state(gvl);
    state.is_some_and(|state| state.engine.is_ending())
}

/// The session's id, and the number of its call tree.
fn tree(gvl: &Gvl<'_>, session: &SamplingSession) -> Option<(SessionId, u64)> {
    let state = session.state(gvl)?;
    Some((session.id, state.engine.epoch()))
}

/// All that is recorded up to `now`; the session begins anew. `None` inside a callback.
fn take_all(gvl: &Gvl<'_>, session: &SamplingSession, now: u64) -> Option<TakenFrames> {
    let mut state = session.state(gvl)?;
    let threads = state.accounted_threads(gvl) + session.other_threads();
    let taken = state.engine.clear(now, threads as u32);
    state.forget_points(gvl);
    session.forget_learned(&AtWork::begin(gvl));
    Some(taken)
}

/// A copy of all that is recorded up to `now`. `None` inside a callback.
fn take_copy(
    gvl: &Gvl<'_>,
    session: &SamplingSession,
    now: u64,
    room: Vec<CapturedNode>,
) -> Option<TakenFrames> {
    let mut state = session.state(gvl)?;
    Some(state.engine.snapshot(now, room))
}

/// What is summed beside samples; it is let go of if `clear`. Objects in use were `looked` at.
fn take_sums(gvl: &Gvl<'_>, session: &SamplingSession, looked: Look, clear: bool) -> TakenSums {
    gc_cost::share_all(gvl, session, looked.has_seen);
    session.sums.take(gvl, session, looked.at, clear)
}

/// Room for the call tree's nodes, and for some more.
fn room_for_nodes(gvl: &mut Gvl<'_>) -> Result<Vec<CapturedNode>, Error> {
    let state = sampling(gvl).and_then(|session| session.state(gvl));
    let nodes = state.map_or(0, |state| state.engine.nodes());
    without_gvl_if_possible(|| CapturedNode::room(nodes + nodes / 8))
}

/// Frees the bridge side of the session `id`, whose hooks have been removed. `None` if another
/// thread has ended it.
fn take_down(
    gvl: &mut Gvl<'_>,
    id: SessionId,
    alive: &LiveThreads,
) -> Option<(Arc<Settings>, Session)> {
    sampling(gvl).filter(|session| session.id == id)?;
    // SAFETY: the hooks and the handler of this session have been removed, but for those on collections
    // and on new objects in some versions. Where other Ractors collect beside this thread, the hook on
    // collections returns at once.
    let running = unsafe { running::end(gvl, id) }?;
    let Kind::Sampling(session) = running.kind else {
        return None;
    };
    let (engine, threads) = session.into_parts();
    for state in threads {
        // The slot of a thread that is ending or gone still points here: it can't be touched.
        if !state.end.has_come() && !alive.forget_state(gvl, &state) {
            Box::leak(state);
        }
    }
    Some((running.settings, engine))
}

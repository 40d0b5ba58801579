//! A step of a session that is watched: threads are brought up to now, new frames get names, and the
//! worker is told what is new. At a safepoint, with the GVL, which no other thread gets meanwhile:
//! so each part has a limit, and the next step goes on with the rest. Calls no method of Ruby's.

use crate::recording::{epoch, sample};
use crate::ruby::resolve;
use crate::ruby::threads::RubyThread;
use crate::running::sampling::{self, counting_session, sampling};
use crate::running::{label_set, roots};
use rperf_sampling::{AtWork, HandlerOff, OffGvl, RunningSession, SharedTable, Ticks};
use rperf_vm::{Gvl, LabelTexts, clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// For how long threads are brought up to now, and for how long frames are named.
const LIMIT: Duration = Duration::from_micros(200);

/// Where the next step goes on, if one wasn't complete: the rows of the threads of the main Ractor,
/// and of others.
static MAIN_ROW: AtomicUsize = AtomicUsize::new(0);
static OTHER_ROW: AtomicUsize = AtomicUsize::new(0);

/// Brings the sums up to now. `reply` gets them, on the worker's thread, and whether they are
/// complete. Without a session nothing happens.
pub fn step(gvl: &mut Gvl<'_>, reply: impl FnOnce(&SharedTable, bool) + Send + 'static) {
    sampling::catching_with(gvl, |gvl| {
        let _handler_off = HandlerOff::begin();
        let began = clock::monotonic_ns();
        if !is_watched(gvl) {
            MAIN_ROW.store(0, Relaxed);
            OTHER_ROW.store(0, Relaxed);
        }
        let brought_up = counting_session(gvl).and_then(|session| bring_up(gvl, session));
        let (now, are_all) = brought_up.unwrap_or((began, true));
        epoch::name_frames(gvl, LIMIT);
        name_frames(gvl);
        if let Some(session) = sampling(gvl)
            && let Some(mut state) = session.state(gvl)
        {
            state.engine.tell(now, began, move |table, is_complete| {
                reply(table, is_complete && are_all);
            });
        }
    });
}

/// The ticks of the session that runs: they know which thread has the GVL.
pub fn ticks(gvl: &Gvl<'_>) -> Option<Arc<Ticks>> {
    sampling(gvl).map(|session| Arc::clone(&session.ticks))
}

/// What the session that runs knows of a thread.
pub struct Facts {
    /// Its number in the profile.
    pub number: u32,
    /// The labels of its present fiber.
    pub labels: LabelTexts,
    /// How long it has been without the GVL, if it is.
    pub off_gvl: Option<OffGvl>,
}

/// The facts of a thread.
pub fn facts(gvl: &Gvl<'_>, thread: RubyThread<'_>) -> Option<Facts> {
    let session = sampling(gvl)?;
    let state = thread.known_state(gvl)?;
    let number = state.gvl_part(gvl)?.accounting.as_ref()?.seq();
    let labels = label_set::of_thread(gvl, thread).map(|set| Arc::clone(set.texts()));
    Some(Facts {
        number,
        labels: labels.unwrap_or_default(),
        off_gvl: session.off_gvl(gvl, state),
    })
}

/// Nobody watches any more.
pub fn end(gvl: &Gvl<'_>) {
    let Some(session) = sampling(gvl) else { return };
    sampling::catching(session, || {
        if let Some(mut state) = session.state(gvl) {
            state.engine.end_watch();
        }
    });
}

/// Whether this session was watched before.
fn is_watched(gvl: &Gvl<'_>) -> bool {
    let state = sampling(gvl).and_then(|session| session.state(gvl));
    state.is_some_and(|state| state.engine.is_watched())
}

/// Brings threads up to now, which is returned, and whether these were all. `None` inside of a
/// callback.
fn bring_up(gvl: &Gvl<'_>, session: &RunningSession) -> Option<(u64, bool)> {
    let limit_ns = LIMIT.as_nanos() as u64;
    let guard = AtWork::begin(gvl);
    sample::drain_ticks(gvl, session, &guard);
    let current = RubyThread::current(gvl).id();
    let mut threads = session.flush_seen(gvl, current, MAIN_ROW.load(Relaxed), limit_ns)?;
    let now = threads.now_ns;
    for wanted in threads.by_ref() {
        sample::record(gvl, session, wanted);
    }
    let main = threads.next_row();
    MAIN_ROW.store(main.unwrap_or(0), Relaxed);
    let until_ns = now.saturating_add(2 * limit_ns);
    let (frames, other) = session.add_others(gvl, now, OTHER_ROW.load(Relaxed), until_ns);
    roots::keep_alive(&frames);
    OTHER_ROW.store(other.unwrap_or(0), Relaxed);
    Some((now, main.is_none() && other.is_none()))
}

fn name_frames(gvl: &mut Gvl<'_>) {
    resolve::name_frames(gvl, LIMIT, |gvl, named| {
        let mut state = sampling(gvl)?.state(gvl)?;
        if let Some((frame, name)) = named {
            state.engine.tell_name(frame, name);
        }
        state.engine.next_untold()
    });
}

//! The GC event hook: how long each piece of collection work took, and how much
//! of it was marking. Runs on the thread that collects, with the VM's lock held;
//! a backtrace is taken at GC_EXIT only, when objects are at rest again.
//!
//! In Ruby 3.4 the hooks of the main Ractor fall silent, all of them, when a Ractor's
//! object is freed (`rb_hook_list_free` sets the VM's flags to those of the freed list;
//! Ruby 4.0 doesn't). The next collection is then not seen, and the hook is registered
//! anew.

use super::event_hook::EventHook;
use crate::vm::recording::{running_thread, tick_samples};
use crate::vm::state::session::{self, RunningSession};
use crate::vm::state::threads::RubyThread;
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::{AtWork, GcEvent, Gvl, clock};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A collection is in its marking phase, which may take several pieces.
static MARKING: AtomicBool = AtomicBool::new(false);

/// How many collections had begun when the last one was seen to begin; [`MISSED`] if
/// events of one were.
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);

/// When the hook was registered anew, on the monotonic clock. It takes memory, for which
/// the VM may collect.
static LISTENED_NS: AtomicU64 = AtomicU64::new(0);

/// How often that is done at most, in ns.
const LISTEN_INTERVAL_NS: u64 = 20_000_000;

/// No number of collections.
const MISSED: u64 = u64::MAX;

/// The hook, for [`add`]. Internal events don't switch on tracing of Ruby code.
pub static HOOK: EventHook = EventHook::new(on_event, ENTER | EXIT | START | END_MARK);

/// Registers the hook. With the GVL, outside of hooks.
pub fn add() {
    // A collection may be under way, in steps.
    // SAFETY: both take a Symbol and return one; neither raises for this key.
    let is_marking = unsafe {
        let symbol = |name: &std::ffi::CStr| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
        rb_sys::rb_gc_latest_gc_info(symbol(c"state")) == symbol(c"marking")
    };
    MARKING.store(is_marking, Relaxed);
    HOOK.add();
    // To add it takes memory, for which the VM may collect.
    COLLECTIONS.store(collections(), Relaxed);
}

/// How many collections have begun in this process. Async-signal-safe.
fn collections() -> u64 {
    // SAFETY: it reads a number of the VM's.
    unsafe { rb_sys::rb_gc_count() }
}

/// Whether the hook may have fallen silent: events of a collection didn't arrive, as is so
/// with those of other Ractors, too. Async-signal-safe.
pub fn may_be_silent(now: u64) -> bool {
    // SAFETY: a constant of the VM's.
    let can_be = unsafe { rb_sys::ruby_api_version[0] < 4 };
    can_be
        && COLLECTIONS.load(Relaxed) != collections()
        && now.saturating_sub(LISTENED_NS.load(Relaxed)) >= LISTEN_INTERVAL_NS
}

/// Whether the collection that the hook has seen begin is over: the VM has lost the event
/// of its end. Async-signal-safe.
pub fn is_over() -> bool {
    // SAFETY: it reads a flag of the VM's.
    unsafe { rb_sys::rb_during_gc() == 0 }
}

/// Makes sure that the hook is heard. With the GVL, where nobody collects garbage.
pub fn listen(session: &RunningSession, now: u64) {
    if session.ticks.is_collecting() {
        COLLECTIONS.store(MISSED, Relaxed);
    }
    if may_be_silent(now) {
        LISTENED_NS.store(now, Relaxed);
        HOOK.remove();
        add();
    }
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    // Hooks are a Ractor's own, though collections are the VM's: those that threads of
    // other Ractors do go unseen.
    let event = match event {
        ENTER => GcEvent::Enter,
        START => {
            MARKING.store(true, Relaxed);
            COLLECTIONS.store(collections(), Relaxed);
            GcEvent::MarkBegin
        }
        END_MARK => {
            MARKING.store(false, Relaxed);
            GcEvent::MarkEnd
        }
        _ => GcEvent::Exit,
    };
    // SAFETY: on the thread that collects, which runs Ruby code.
    unsafe {
        session::with_counting_session(|gvl, session| {
            let now = clock::monotonic_ns();
            if event == GcEvent::Enter {
                session.ticks.begin_collecting(now);
            }
            advance(gvl, session, event, now);
            if event == GcEvent::Exit {
                session.ticks.end_collecting();
            }
        });
    }
}

/// Takes an event of the collecting thread's, and accounts the piece of work that it ends.
fn advance(gvl: &Gvl<'_>, session: &RunningSession, event: GcEvent, now: u64) {
    let tick = session.ticks.last_tick();
    let is_marking = MARKING.load(Relaxed);
    let ended = session
        .state(gvl)
        .and_then(|mut state| state.gc.advance(event, now, tick, is_marking));
    let Some(work) = ended else {
        return;
    };
    let thread = RubyThread::current(gvl);
    let state = thread.state(&session.new_threads);
    let Some(mut part) = state.gvl_part(gvl) else {
        return;
    };
    // What the ticks before the collection found comes before it.
    tick_samples::drain(gvl, session, &mut part, &AtWork::begin(gvl));
    let part = &mut *part;
    let Some(accounting) = &mut part.accounting else {
        return;
    };
    let dues = accounting.collected(work, session.ticks.last_tick());
    if !dues.is_empty() {
        let recorded = (accounting, &mut part.last_stack);
        running_thread::record(gvl, session, thread, (now, dues), recorded);
    }
    if !session.ticks.has_holder() {
        // It runs though no event said so.
        running_thread::enter(gvl, session, state, part, |_| ());
    }
}

//! The GC event hook: how long each piece of collection work took, and how much
//! of it was marking. Runs on the thread that collects, with the VM's lock held;
//! a backtrace is taken at GC_EXIT only, when objects are at rest again.
//!
//! In Ruby 3.4 the hooks of the main Ractor fall silent, all of them, when a Ractor's
//! object is freed (`rb_hook_list_free` sets the VM's flags to those of the freed list;
//! Ruby 4.0 doesn't). The next collection is then not seen, and the hook is registered
//! anew.

use super::other_ractor;
use crate::ruby::event_hook::EventHook;
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::ractor;
use crate::ruby::threads::RubyThread;
use crate::vm::recording::sample;
use crate::vm::state::session;
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::{AtWork, GcEvent, RunningSession, clock};
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
    MARKING.store(is_marking(), Relaxed);
    HOOK.add();
    // To add it takes memory, for which the VM may collect.
    COLLECTIONS.store(collections(), Relaxed);
}

/// Whether a collection is in its marking phase. With the GVL, outside of hooks.
pub fn is_marking() -> bool {
    // SAFETY: both take a Symbol and return one; neither raises for this key.
    unsafe {
        let symbol = |name: &std::ffi::CStr| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
        rb_sys::rb_gc_latest_gc_info(symbol(c"state")) == symbol(c"marking")
    }
}

/// How many collections have begun in this process. Async-signal-safe.
fn collections() -> u64 {
    // SAFETY: it reads a number of the VM's.
    unsafe { rb_sys::rb_gc_count() }
}

/// Whether events of a collection didn't arrive, as is so with those of other Ractors, too.
fn has_missed_events() -> bool {
    // SAFETY: a constant of the VM's.
    let can_miss = unsafe { rb_sys::ruby_api_version[0] < 4 };
    can_miss && COLLECTIONS.load(Relaxed) != collections()
}

/// Whether the hook may have fallen silent, and it is time to register it anew.
/// Async-signal-safe.
pub fn may_be_silent(now: u64) -> bool {
    has_missed_events() && now.saturating_sub(LISTENED_NS.load(Relaxed)) >= LISTEN_INTERVAL_NS
}

/// Whether the collection that the hook has seen begin is over: the VM has lost the event
/// of its end. Async-signal-safe.
pub fn is_over() -> bool {
    // SAFETY: it reads a flag of the VM's.
    unsafe { rb_sys::rb_during_gc() == 0 }
}

/// Makes sure that the hook is heard. With the GVL, where nobody collects garbage.
pub fn listen(session: &RunningSession) {
    if session.ticks.is_collecting() {
        COLLECTIONS.store(MISSED, Relaxed);
    }
    if has_missed_events() {
        let now = clock::monotonic_ns();
        if may_be_silent(now) {
            LISTENED_NS.store(now, Relaxed);
            HOOK.remove();
            add();
        }
    }
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
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
    let is_marking = MARKING.load(Relaxed);
    // SAFETY: on the thread that collects, which runs Ruby code.
    if !unsafe { ractor::is_main() } {
        return collected_elsewhere(event, is_marking);
    }
    // SAFETY: as above.
    unsafe {
        session::with_counting_session(|gvl, session| {
            let state = || RubyThread::current(gvl).state(gvl, &session.new_threads);
            // A tick is none until the collection is recorded.
            let _guard = AtWork::begin(gvl);
            sample::complete(
                gvl,
                session,
                session.collecting(gvl, event, is_marking, state),
            );
        });
    }
}

/// A thread of another Ractor collects, the calling one. In Ruby 3.4 hooks are a Ractor's own, and
/// no event tells of it.
#[cold]
fn collected_elsewhere(event: GcEvent, is_marking: bool) {
    // SAFETY: the calling thread has its Ractor's GVL, and its object lives as long as it runs. The
    // thread that frees a session is stopped, as all but this one are.
    unsafe {
        let gvl = OtherGvl::assume_held();
        let thread = RubyThread::from_raw(rb_sys::rb_thread_current());
        session::in_hook(|session| {
            other_ractor::event(&gvl, thread, |vm, thread| {
                session.other_collecting(&vm, thread, event, is_marking);
            });
        });
    }
}

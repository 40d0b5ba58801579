//! The GC event hook: how long each piece of collection work took, and how much
//! of it was marking. Runs on the thread that collects, with the VM's lock held;
//! a backtrace is taken at GC_EXIT only, when objects are at rest again.
//!
//! In Ruby 4.0 these events have one list for all Ractors, which a thread that ends walks without a
//! lock (`rb_ec_clear_current_thread_trace_func`): there the hook stays registered once it is, as
//! removing it frees its entry. Without a session it does nothing.

use super::other_ractor;
use crate::ruby::event_hook::EventHook;
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::process::{collections, version};
use crate::ruby::ractor::AnyGvl;
use crate::ruby::threads::RubyThread;
use crate::vm::recording::sample;
use crate::vm::state::session;
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::{AtWork, GC_WATCH, GcEvent, RunningSession, clock};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What the hook listens to.
pub const EVENTS: u32 = ENTER | EXIT | START | END_MARK;

/// The hook, for [`add`]. Internal events don't switch on tracing of Ruby code.
static HOOK: EventHook = EventHook::new(on_event, EVENTS);

/// The hook is registered. A forked child inherits it.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the hook, if it isn't. With the GVL, outside of hooks.
pub fn add() {
    // A collection may be under way, in steps.
    GC_WATCH.begin(has_list_of_its_own(), is_marking());
    if !IS_REGISTERED.swap(true, Relaxed) {
        HOOK.add();
    }
    GC_WATCH.begun(collections());
}

/// Removes the hook, where it can be removed. With the GVL, outside of hooks.
pub fn remove() {
    if has_list_of_its_own() && IS_REGISTERED.swap(false, Relaxed) {
        GC_WATCH.look(collections());
        HOOK.remove();
    }
}

/// Whether the VM has not told of all that hooks listen to, since the session began. With the GVL,
/// where nobody collects garbage.
pub fn has_missed() -> bool {
    if IS_REGISTERED.load(Relaxed) {
        GC_WATCH.look(collections());
    }
    GC_WATCH.has_missed()
}

/// Whether each Ractor has a list of its own for these events, as in Ruby 3.4.
pub fn has_list_of_its_own() -> bool {
    version() < (4, 0)
}

/// Whether a collection is in its marking phase. With the GVL, outside of hooks.
pub fn is_marking() -> bool {
    // SAFETY: both take a Symbol and return one; neither raises for this key.
    unsafe {
        let symbol = |name: &std::ffi::CStr| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
        rb_sys::rb_gc_latest_gc_info(symbol(c"state")) == symbol(c"marking")
    }
}

/// Makes sure that the hook is heard. With the GVL, where nobody collects garbage.
pub fn listen(session: &RunningSession) {
    if session.ticks.is_collecting() {
        GC_WATCH.end_is_missing();
    }
    if GC_WATCH.is_silent(collections, clock::monotonic_ns) {
        GC_WATCH.listen(clock::monotonic_ns());
        remove();
        add();
    }
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    let event = match event {
        ENTER => GcEvent::Enter,
        START => {
            GC_WATCH.mark_begins(collections());
            GcEvent::MarkBegin
        }
        END_MARK => {
            GC_WATCH.mark_ends();
            GcEvent::MarkEnd
        }
        _ => GcEvent::Exit,
    };
    let is_marking = GC_WATCH.is_marking();
    // SAFETY: on the thread that collects, which runs Ruby code.
    match unsafe { AnyGvl::assume_held() } {
        AnyGvl::Main(gvl) => session::with_counting_session(&gvl, |session| {
            let state = || RubyThread::current(&gvl).state(&gvl, &session.new_threads);
            // A tick is none until the collection is recorded.
            let _guard = AtWork::begin(&gvl);
            let follow_up = session.collecting(&gvl, event, is_marking, state);
            sample::complete(&gvl, session, follow_up);
        }),
        AnyGvl::Other(gvl) => collected_elsewhere(&gvl, event, is_marking),
    }
}

/// A thread of another Ractor collects, the calling one. In Ruby 3.4 hooks are a Ractor's own, and
/// no event tells of it.
#[cold]
fn collected_elsewhere(gvl: &OtherGvl, event: GcEvent, is_marking: bool) {
    let collected = |session: &RunningSession| {
        other_ractor::event(gvl, RubyThread::current(gvl), |vm, thread| {
            session.other_collecting(&vm, thread, event, is_marking);
        });
    };
    // SAFETY: the thread that frees a session is stopped, as all but this one are.
    unsafe { session::in_hook(collected) };
}

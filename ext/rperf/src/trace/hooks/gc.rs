//! Collections in a traced session: their time is not the program's. On the thread that collects,
//! with the VM's lock held.

use crate::ruby::event_hook::{EventHook, can_remove_internal};
use crate::ruby::process::collections;
use crate::ruby::ractor::AnyGvl;
use crate::trace::state::session::with_tracer;
use crate::vm::hooks::gc::{EVENTS, has_list_of_its_own, is_marking};
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::{GC_WATCH, GcEvent};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static HOOK: EventHook = EventHook::new(on_event, EVENTS);

/// The hook is registered. A forked child inherits it.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the hook, if it isn't. With the GVL, outside of hooks.
pub fn add() {
    // One may be under way, in steps.
    GC_WATCH.begin(has_list_of_its_own(), is_marking());
    if !IS_REGISTERED.swap(true, Relaxed) {
        HOOK.add();
    }
    GC_WATCH.begun(collections());
}

/// Removes the hook, if it can be removed. With the GVL, outside of hooks.
pub fn remove() {
    if can_remove_internal() && IS_REGISTERED.swap(false, Relaxed) {
        GC_WATCH.look(collections());
        HOOK.remove();
    }
}

/// Whether the VM has not told of all calls since the session began. With the GVL, outside of
/// hooks.
pub fn has_missed() -> bool {
    if IS_REGISTERED.load(Relaxed) {
        GC_WATCH.look(collections());
    }
    GC_WATCH.has_missed()
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
    // SAFETY: on the thread that collects, which runs Ruby code.
    let AnyGvl::Main(gvl) = (unsafe { AnyGvl::assume_held() }) else {
        return;
    };
    with_tracer(&gvl, |session, tracer| {
        tracer.collecting(event, GC_WATCH.is_marking(), session.clock.now());
    });
}

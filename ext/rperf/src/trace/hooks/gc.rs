//! Collections in a traced session: their time is not the program's. On the thread that collects,
//! with the VM's lock held.

use crate::ruby::event_hook::{EventHook, can_remove_internal};
use crate::ruby::ractor::AnyGvl;
use crate::trace::state::session::with_tracer;
use crate::vm::hooks::gc::is_marking;
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::GcEvent;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A collection is in its marking phase, which may take several pieces.
static MARKING: AtomicBool = AtomicBool::new(false);

static HOOK: EventHook = EventHook::new(on_event, ENTER | EXIT | START | END_MARK);

/// The hook is registered. A forked child inherits it.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the hook, if it isn't. With the GVL, outside of hooks.
pub fn add() {
    // One may be under way, in steps.
    MARKING.store(is_marking(), Relaxed);
    if !IS_REGISTERED.swap(true, Relaxed) {
        HOOK.add();
    }
}

/// Removes the hook, if it can be removed. With the GVL, outside of hooks.
pub fn remove() {
    if can_remove_internal() && IS_REGISTERED.swap(false, Relaxed) {
        HOOK.remove();
    }
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    let event = match event {
        ENTER => GcEvent::Enter,
        START => {
            MARKING.store(true, Relaxed);
            GcEvent::MarkBegin
        }
        END_MARK => {
            MARKING.store(false, Relaxed);
            GcEvent::MarkEnd
        }
        _ => GcEvent::Exit,
    };
    // SAFETY: on the thread that collects, which runs Ruby code.
    let AnyGvl::Main(gvl) = (unsafe { AnyGvl::assume_held() }) else {
        return;
    };
    with_tracer(&gvl, |session, tracer| {
        tracer.collecting(event, MARKING.load(Relaxed), session.clock.now());
    });
}

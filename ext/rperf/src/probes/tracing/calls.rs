//! Calls, returns and switches of fibers in a session that traces, on threads of the main Ractor. The
//! hook makes the VM rewrite the code of all methods for good: they stay slower when it is removed.

use super::labels;
use crate::ruby::event_hook::{Callback, EventHook};
use crate::ruby::frames::RubyVm;
use crate::ruby::threads::RubyThread;
use crate::running::chosen::with_chosen;
use crate::running::roots;
use crate::running::tracing::{with_counting_tracer, with_tracer};
use rb_sys::{
    ID, RUBY_EVENT_B_CALL as B_CALL, RUBY_EVENT_B_RETURN as B_RETURN, RUBY_EVENT_C_CALL as C_CALL,
    RUBY_EVENT_C_RETURN as C_RETURN, RUBY_EVENT_CALL as CALL, RUBY_EVENT_CLASS as CLASS,
    RUBY_EVENT_END as END, RUBY_EVENT_FIBER_SWITCH as FIBER_SWITCH, RUBY_EVENT_RESCUE as RESCUE,
    RUBY_EVENT_RETURN as RETURN, VALUE,
};
use rperf_tracing::{Call, CallKind, TraceLevel, TracedFrame, Tracer};
use rperf_vm::Gvl;

/// What the hook on calls and returns is for.
const TIMED: u8 = 0;
const COUNTED: u8 = 1;
const SWITCHES: u8 = 2;

/// Beside chosen methods; in other traces the hook on calls is told of switches, too: each event
/// looks at each hook that there is.
pub static SWITCHES_ALONE: EventHook = EventHook::new(on_event::<SWITCHES>, FIBER_SWITCH);

/// The hook on calls of a level, and on switches of fibers.
fn call_hook(level: TraceLevel) -> EventHook {
    let callback: Callback = match level.timed {
        true => on_event::<TIMED>,
        false => on_event::<COUNTED>,
    };
    EventHook::new(callback, events(level) | FIBER_SWITCH)
}

/// The events of a level. Without times, a call says what has returned before it.
fn events(level: TraceLevel) -> u32 {
    let calls = CALL | B_CALL | CLASS | if level.c_methods { C_CALL } else { 0 };
    let returns = RETURN | B_RETURN | END | if level.c_methods { C_RETURN } else { 0 };
    match level.timed {
        true => calls | returns | RESCUE,
        false => calls,
    }
}

/// Registers the hook for a level. With the GVL, outside of hooks.
pub fn add(level: TraceLevel) {
    call_hook(level).add();
}

/// Registers a hook that does nothing, on the events of a level: for benchmarks.
#[cfg(feature = "measure")]
pub fn add_empty(level: TraceLevel) {
    EventHook::new(on_nothing, events(level)).add();
}

#[cfg(feature = "measure")]
unsafe extern "C" fn on_nothing(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {}

/// Removes the hook, if it is there. With the GVL, outside of hooks.
pub fn remove() {
    EventHook::new(on_event::<TIMED>, 0).remove();
    EventHook::new(on_event::<COUNTED>, 0).remove();
}

unsafe extern "C" fn on_event<const FOR: u8>(event: u32, _: VALUE, _: VALUE, id: ID, class: VALUE) {
    // SAFETY: the VM calls the hook on threads of the Ractor that added it, which run Ruby code.
    let mut gvl = unsafe { Gvl::assume_held() };
    if FOR == SWITCHES || event == FIBER_SWITCH {
        on_fiber_switch(&mut gvl);
    } else if FOR == COUNTED {
        count(&gvl, event, id, class);
    } else {
        time(&gvl, event, id, class);
    }
}

/// A call at a level without times.
#[inline]
fn count(gvl: &Gvl<'_>, event: u32, id: ID, class: VALUE) {
    with_counting_tracer(gvl, |_, tracer| {
        let vm = RubyVm::new(gvl);
        tracer.count(&vm, call_of(event, id, class));
        #[cfg(feature = "measure")]
        if tracer.is_checked() && tracer.is_look_due() {
            tracer.compare_stacks(&vm, false);
        }
        roots::keep_traced_alive(tracer);
    });
}

/// What begins.
#[inline]
fn call_of(event: u32, id: ID, class: VALUE) -> Call {
    match event {
        CALL => Call::Method,
        B_CALL => Call::Block,
        C_CALL => Call::C {
            owner: class as usize,
            method: id as usize,
        },
        _ => Call::Class,
    }
}

/// An event at a level with times.
#[inline]
fn time(gvl: &Gvl<'_>, event: u32, id: ID, class: VALUE) {
    with_counting_tracer(gvl, |session, tracer| {
        let now = session.now();
        let (kind, is_return) = told(gvl, tracer, event, id, class, now);
        tracer.follow_calls(now);
        if tracer.is_look_due() {
            tracer.note_look(kind, is_return, session.now().saturating_sub(now));
            // A rescue clause has come without a word, and a method of C has gone.
            #[cfg(feature = "measure")]
            if !matches!(event, RESCUE | C_RETURN) {
                let is_return = matches!(event, RETURN | B_RETURN | END);
                tracer.compare_stacks(&RubyVm::new(gvl), is_return);
            }
        }
        roots::keep_traced_alive(tracer);
    });
}

/// Tells the tracer of an event; returns whose cost it is.
#[inline]
fn told(
    gvl: &Gvl<'_>,
    tracer: &mut Tracer,
    event: u32,
    id: ID,
    class: VALUE,
    now: u64,
) -> (CallKind, bool) {
    let vm = RubyVm::new(gvl);
    let kind = match event {
        B_CALL | B_RETURN => CallKind::Block,
        C_CALL | C_RETURN => CallKind::C,
        _ => CallKind::Method,
    };
    // Each is called in one place, and so becomes part of the hook.
    match event {
        CALL | B_CALL | C_CALL | CLASS => tracer.enter(&vm, call_of(event, id, class), now),
        RESCUE => tracer.rescued(&vm, now),
        _ => {
            let c_method = (event == C_RETURN).then_some(TracedFrame {
                word: class as usize,
                method: id as usize,
            });
            tracer.leave(&vm, c_method, now);
        }
    }
    (kind, matches!(event, RETURN | B_RETURN | C_RETURN))
}

#[cold]
fn on_fiber_switch(gvl: &mut Gvl<'_>) {
    // SAFETY: on a Ruby thread; a fiber that is switched to has an object already. As an interrupt
    // goes on, nothing is left to be dropped on the stacks of this function and of the hook.
    unsafe {
        let fiber = rb_sys::rb_fiber_current();
        switched(gvl, fiber as usize);
        if let Err(interrupt) = labels::switched(gvl) {
            magnus::rb_sys::resume_error(interrupt);
        }
    }
}

/// The calling thread has switched to the fiber with this object.
fn switched(gvl: &Gvl<'_>, fiber: usize) {
    with_tracer(gvl, |session, tracer| {
        tracer.switched(&RubyVm::new(gvl), fiber, session.now());
    });
    with_chosen(gvl, |chosen, tracer| {
        let (thread, now) = (RubyThread::current(gvl), chosen.clock.now());
        let number = chosen.number_of(thread);
        tracer.switched(&RubyVm::new(gvl), number, fiber, now);
    });
}

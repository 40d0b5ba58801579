//! The GC event hook: how long each piece of collection work took, and how much
//! of it was marking. Runs on the thread that collects, with the VM's lock held;
//! a backtrace is taken at GC_EXIT only, when objects are at rest again.

use super::running_thread::{self, EventRecorder};
use super::tick_guard::{self, AtWork};
use super::{guarded_in_main_ractor, thread_hook, tick_capture};
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::clock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Where the collection at hand stands.
#[derive(Debug, Default)]
pub struct GcProgress {
    /// When the present piece of work began; 0 outside of one.
    enter_ns: u64,
    /// When marking began or went on within it; 0 if it isn't marking.
    marking_since_ns: u64,
    /// Marking time within it that is over.
    marked_ns: u64,
    /// The last tick before it.
    tick_before_ns: u64,
}

/// A collection is in its marking phase, which may take several pieces.
static MARKING: AtomicBool = AtomicBool::new(false);

/// The events that a session registers.
pub const EVENTS: u32 = ENTER | EXIT | START | END_MARK;

/// Registers the hook. With the GVL, outside of hooks.
pub fn add() {
    // A collection may be under way, in steps.
    // SAFETY: both take a Symbol and return one; neither raises for this key.
    let is_marking = unsafe {
        let symbol = |name: &std::ffi::CStr| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
        rb_sys::rb_gc_latest_gc_info(symbol(c"state")) == symbol(c"marking")
    };
    MARKING.store(is_marking, Relaxed);
    // SAFETY: the callback is valid for ever. Internal events don't switch on
    // tracing of Ruby code.
    unsafe { rb_sys::rb_add_event_hook(Some(on_event), EVENTS, 0) };
}

/// Removes the hook, if it is there. With the GVL.
pub fn remove() {
    // SAFETY: removes by function; does nothing if it is not registered.
    unsafe { rb_sys::rb_remove_event_hook(Some(on_event)) };
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    // Hooks are a Ractor's own, though collections are the VM's: those that threads of
    // other Ractors do go unseen.
    match event {
        ENTER => tick_guard::set_collecting(true),
        START => MARKING.store(true, Relaxed),
        END_MARK => MARKING.store(false, Relaxed),
        _ => {}
    }
    guarded_in_main_ractor(|process, live| {
        let now = clock::monotonic_ns();
        // SAFETY: the collecting thread is the main Ractor's and has its GVL.
        let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
            return;
        };
        match event {
            ENTER => live.ticks.set_collecting(true),
            EXIT => live.ticks.set_collecting(false),
            _ => {}
        }
        let ended = inner.gc.advance(event, now, live.ticks.last_tick());
        drop(inner);
        let Some(work) = ended else {
            return;
        };
        // SAFETY: a Ruby thread is running.
        let thread = unsafe { rb_sys::rb_thread_current() };
        let state = thread_hook::state_of(process, live, thread);
        // SAFETY: the GVL is held and `state` is this thread's own.
        let part = unsafe { state.gvl_part() };
        // What the ticks before the collection found comes before it.
        tick_capture::drain(live, part, &AtWork::begin());
        let Some(accounting) = &mut part.accounting else {
            return;
        };
        // SAFETY: the collecting thread has the GVL; the last stack is its own.
        let mut recorder = unsafe { EventRecorder::new(live, now, &mut part.last_stack) };
        accounting.collected(work, live.ticks.last_tick(), &mut recorder);
        if !live.ticks.has_holder() {
            // It runs though no event said so.
            // SAFETY: as above.
            unsafe { running_thread::enter(live, state, part, |_| ()) };
        }
    });
    if event == EXIT {
        tick_guard::set_collecting(false);
    }
}

impl GcProgress {
    /// Takes an event; returns the piece of work that it ends, if it does.
    fn advance(&mut self, event: u32, now: u64, last_tick: u64) -> Option<rperf_engine::GcWork> {
        match event {
            ENTER => {
                self.enter_ns = now;
                self.tick_before_ns = last_tick;
                self.marked_ns = 0;
                self.marking_since_ns = if MARKING.load(Relaxed) { now } else { 0 };
            }
            START => self.marking_since_ns = now,
            END_MARK => self.stop_marking(now),
            EXIT => {
                self.stop_marking(now);
                let enter_ns = std::mem::take(&mut self.enter_ns);
                return (enter_ns != 0).then_some(rperf_engine::GcWork {
                    enter_ns,
                    exit_ns: now,
                    marking_ns: self.marked_ns,
                    tick_before_ns: self.tick_before_ns,
                });
            }
            _ => {}
        }
        None
    }

    fn stop_marking(&mut self, now: u64) {
        if self.marking_since_ns != 0 {
            self.marked_ns += now.saturating_sub(self.marking_since_ns);
            self.marking_since_ns = 0;
        }
    }
}

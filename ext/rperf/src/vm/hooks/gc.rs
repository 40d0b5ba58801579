//! The GC event hook: how long each piece of collection work took, and how much
//! of it was marking. Runs on the thread that collects, with the VM's lock held;
//! a backtrace is taken at GC_EXIT only, when objects are at rest again.
//!
//! In Ruby 3.4 the hooks of the main Ractor fall silent, all of them, when a Ractor's
//! object is freed (`rb_hook_list_free` sets the VM's flags to those of the freed list;
//! Ruby 4.0 doesn't). The next collection is then not seen, and the hook is registered
//! anew.

use crate::vm::recording::running_thread;
use crate::vm::recording::running_thread::{EventRecorder};
use crate::vm::state::tick_guard::AtWork;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::recording::tick_capture;
use crate::vm::{Live, Process, guarded_in_main_ractor};
use rb_sys::{
    ID, RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START, VALUE,
};
use rperf_engine::clock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

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
    // To add it takes memory, for which the VM may collect.
    COLLECTIONS.store(collections(), Relaxed);
}

/// Removes the hook, if it is there. With the GVL.
pub fn remove() {
    // SAFETY: removes by function; does nothing if it is not registered.
    unsafe { rb_sys::rb_remove_event_hook(Some(on_event)) };
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
pub fn listen(live: &Live, now: u64) {
    if live.ticks.is_collecting() {
        COLLECTIONS.store(MISSED, Relaxed);
    }
    if may_be_silent(now) {
        LISTENED_NS.store(now, Relaxed);
        remove();
        add();
    }
}

unsafe extern "C" fn on_event(event: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    // Hooks are a Ractor's own, though collections are the VM's: those that threads of
    // other Ractors do go unseen.
    match event {
        START => {
            MARKING.store(true, Relaxed);
            COLLECTIONS.store(collections(), Relaxed);
        }
        END_MARK => MARKING.store(false, Relaxed),
        _ => {}
    }
    guarded_in_main_ractor(|process, live| {
        let now = clock::monotonic_ns();
        if event == ENTER {
            live.ticks.begin_collecting(now);
        }
        advance(process, live, event, now);
        if event == EXIT {
            live.ticks.end_collecting();
        }
    });
}

/// Takes an event of the collecting thread's, and accounts the piece of work that it ends.
fn advance(process: &Process, live: &'static Live, event: u32, now: u64) {
    // SAFETY: the collecting thread is the main Ractor's and has its GVL.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
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
    let dues = accounting.collected(work, live.ticks.last_tick());
    if !dues.is_empty() {
        // SAFETY: the collecting thread has the GVL; the last stack is its own.
        unsafe { running_thread::record(live, now, dues, accounting, &mut part.last_stack) };
    }
    if !live.ticks.has_holder() {
        // It runs though no event said so.
        // SAFETY: as above.
        unsafe { running_thread::enter(live, state, part, |_| ()) };
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

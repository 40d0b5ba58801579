//! The hook on collections: how it comes and goes, and what it tells. Runs on the thread that
//! collects; objects are at rest again at GC_EXIT only. Internal events switch no tracing of Ruby
//! code on.
//!
//! Where Ractors share the list of these hooks, the hook stays registered once it is
//! ([`internal_hooks_are_shared`]). Without a session it does nothing.

use super::event_hook::{EventHook, OnInternalEvent};
use super::gc_cause;
use super::process::collections;
use super::ractor::AnyGvl;
use super::version::{
    freed_ractors_silence_hooks, internal_hooks_are_shared, other_ractors_tell_of_collections,
};
use rb_sys::{
    RUBY_INTERNAL_EVENT_GC_END_MARK as END_MARK, RUBY_INTERNAL_EVENT_GC_ENTER as ENTER,
    RUBY_INTERNAL_EVENT_GC_EXIT as EXIT, RUBY_INTERNAL_EVENT_GC_START as START,
};
use rperf_vm::{GC_WATCH, GcEvent};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What the hook listens to.
pub const EVENTS: u32 = ENTER | EXIT | START | END_MARK;

/// How often such a hook was registered.
static ADDITIONS: AtomicU64 = AtomicU64::new(0);

/// How often a hook on collections was registered in this process. To register one wakes all hooks on
/// collections that have fallen silent, and no others.
pub fn additions() -> u64 {
    ADDITIONS.load(Relaxed)
}

/// What is told of collections.
pub trait OnCollection {
    /// A piece of one began or ended on the calling thread, or its marking did. `is_marking`: it is
    /// in that phase.
    fn collecting(gvl: AnyGvl<'_>, event: GcEvent, is_marking: bool);
}

/// The hook of a kind of session, or of accounts.
pub struct GcHook<T> {
    hook: EventHook,
    /// A forked child inherits the hook.
    is_registered: AtomicBool,
    told: PhantomData<fn() -> T>,
}

impl<T: OnCollection> GcHook<T> {
    /// A hook that isn't registered.
    pub const fn new() -> Self {
        Self {
            hook: EventHook::internal::<Self>(EVENTS),
            is_registered: AtomicBool::new(false),
            told: PhantomData,
        }
    }

    /// Registers it, if it isn't. With the GVL, outside of hooks.
    pub fn add(&self) {
        // A collection may be under way, in steps.
        GC_WATCH.begin(freed_ractors_silence_hooks(), is_marking());
        gc_cause::prepare();
        if !self.is_registered.swap(true, Relaxed) {
            self.hook.add();
            ADDITIONS.fetch_add(1, Relaxed);
        }
        GC_WATCH.begun(collections(), is_marking());
    }

    /// Removes it, where it can be removed. With the GVL, outside of hooks.
    pub fn remove(&self) {
        if !internal_hooks_are_shared() && self.is_registered.swap(false, Relaxed) {
            GC_WATCH.look(collections());
            self.hook.remove();
        }
    }

    /// Whether the VM has not told of all that hooks listen to, since the session began. With the
    /// GVL, where nobody collects garbage.
    pub fn has_missed(&self) -> bool {
        if self.is_registered.load(Relaxed) {
            GC_WATCH.look(collections());
        }
        GC_WATCH.has_missed()
    }
}

impl<T: OnCollection> OnInternalEvent for GcHook<T> {
    fn happened(gvl: AnyGvl<'_>, event: u32) {
        if matches!(gvl, AnyGvl::Other(_)) && !other_ractors_tell_of_collections() {
            // Other threads may run meanwhile, and not all such collections are told.
            return;
        }
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
        T::collecting(gvl, event, GC_WATCH.is_marking());
    }
}

/// Whether a collection is in its marking phase. With the GVL, outside of hooks.
pub fn is_marking() -> bool {
    // SAFETY: both take a Symbol and return one; neither raises for this key.
    unsafe {
        let symbol = |name: &std::ffi::CStr| rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr()));
        rb_sys::rb_gc_latest_gc_info(symbol(c"state")) == symbol(c"marking")
    }
}

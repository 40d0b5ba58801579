//! Collections in a session that samples: how long each piece of the work took, and how much of it
//! was marking. On the thread that collects; a backtrace is taken at GC_EXIT only, when objects are
//! at rest again.

use super::{objects_in_use, other_ractor};
use crate::recording::sample;
use crate::ruby::gc_cause;
use crate::ruby::gc_hook::{GcHook, OnCollection};
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::process::collections;
use crate::ruby::ractor::AnyGvl;
use crate::ruby::threads::RubyThread;
use crate::running::sampling;
use rperf_sampling::{AtWork, RunningSession};
use rperf_vm::{GC_WATCH, GcEvent, GcPhase, clock};

/// The hook.
pub static HOOK: GcHook<Collections> = GcHook::new();

/// What it tells.
pub struct Collections;

/// Makes sure that the hook is heard. With the GVL, where nobody collects garbage.
pub fn listen(session: &RunningSession) {
    if session.ticks.is_collecting() {
        GC_WATCH.end_is_missing();
    }
    if GC_WATCH.is_silent(collections, clock::monotonic_ns) {
        GC_WATCH.listen(clock::monotonic_ns());
        HOOK.remove();
        HOOK.add();
    }
}

impl OnCollection for Collections {
    fn collecting(gvl: AnyGvl<'_>, event: GcEvent, is_marking: bool) {
        // As a piece ends, the last collection is the one that it is of.
        let phase = || GcPhase {
            is_marking,
            cause: match event {
                GcEvent::Exit => gc_cause::latest(),
                _ => None,
            },
        };
        match gvl {
            AnyGvl::Main(gvl) => sampling::with_counting_session(&gvl, |session| {
                let phase = phase();
                let state = || RubyThread::current(&gvl).state(&gvl, &session.turnover.new);
                // A tick is none until the collection is recorded.
                let _guard = AtWork::begin(&gvl);
                let follow_up = session.collecting(&gvl, event, phase, state);
                sample::complete(&gvl, session, follow_up);
                if event == GcEvent::Exit {
                    objects_in_use::collected(session, is_marking);
                }
            }),
            AnyGvl::Other(gvl) => collected_elsewhere(&gvl, event, phase),
        }
    }
}

/// A thread of another Ractor collects, the calling one: in a version of Ruby that tells of it, and
/// that stops all other threads meanwhile.
#[cold]
fn collected_elsewhere(gvl: &OtherGvl, event: GcEvent, phase: impl Fn() -> GcPhase) {
    let collected = |session: &RunningSession| {
        let phase = phase();
        other_ractor::event(gvl, RubyThread::current(gvl), |vm, thread| {
            session.other_collecting(&vm, thread, event, phase);
        });
    };
    // SAFETY: the thread that frees a session is stopped, as all but this one are.
    unsafe { sampling::in_hook(collected) };
}

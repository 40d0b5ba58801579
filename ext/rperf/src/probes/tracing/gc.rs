//! Collections in a traced session: their time is not the program's. On the thread that collects,
//! with the VM's lock held.

use crate::ruby::gc_hook::{GcHook, OnCollection};
use crate::ruby::ractor::AnyGvl;
use crate::running::tracing::with_counting_tracer;
use rperf_vm::GcEvent;

/// The hook.
pub static HOOK: GcHook<Collections> = GcHook::new();

/// What it tells.
pub struct Collections;

impl OnCollection for Collections {
    fn collecting(gvl: AnyGvl<'_>, event: GcEvent, is_marking: bool) {
        if let AnyGvl::Main(gvl) = gvl {
            with_counting_tracer(&gvl, |session, tracer| {
                tracer.collecting(event, is_marking, session.now());
            });
        }
    }
}

//! The sampling session while clients of the port watch it. At the safepoint that the port has asked
//! for, on whichever thread of the main Ractor has the GVL.

use crate::sampling::step;
use rperf_port::pull::{self, Holder, Holding, Step};
use rperf_vm::Gvl;
use std::sync::Arc;

/// Brings the sums up to now if somebody wants that. If nobody watches any more, the session is let
/// know.
pub fn see_to(gvl: &mut Gvl<'_>) {
    if !pull::is_watched() {
        step::end(gvl);
    } else if pull::take_wanted() {
        let holder = holder(gvl);
        step::step(gvl, |table, is_complete| {
            pull::answer(Step {
                table: Arc::clone(table),
                is_complete,
                holder,
            });
        });
    }
}

/// Tells which thread has the GVL while the session runs.
fn holder(gvl: &Gvl<'_>) -> Option<Holder> {
    let ticks = step::ticks(gvl)?;
    Some(Arc::new(move || {
        let (tid, turn) = ticks.holder()?;
        Some(Holding { tid: tid.0, turn })
    }))
}

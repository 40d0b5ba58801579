//! Events on threads of other Ractors than the main one: in the hooks that the VM calls for all
//! Ractors, on the thread itself, with its Ractor's GVL.

use crate::ruby::frames::RubyVm;
use crate::ruby::other_gvl::OtherGvl;
use crate::ruby::ractor;
use crate::ruby::threads::RubyThread;
use rperf_sampling::OtherThread;

/// Calls `event` for `thread`, the calling one.
#[cold]
pub fn event(
    gvl: &OtherGvl,
    thread: RubyThread<'_>,
    event: impl FnOnce(RubyVm<'_, OtherGvl>, OtherThread),
) {
    let thread = OtherThread {
        thread: thread.id(),
        slot: thread.other_slot(gvl),
        ractor: ractor::number_of(thread),
    };
    event(RubyVm::new(gvl), thread);
}

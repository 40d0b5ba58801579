//! The hook on the VM's time slices, for stacks that are taken at safepoints. A new
//! thread makes itself the one that triggers of the sampling callback reach before it
//! has the GVL, and until the VM's next switch of threads, up to 100 ms later, they miss
//! the thread that runs. While a thread waits for the GVL, the VM interrupts the running
//! one every 10 ms: this hook, on that thread, asks for the callback anew.

use crate::ruby::event_hook::{EventHook, OnInternalEvent};
use crate::ruby::ractor::AnyGvl;
use crate::ruby::safepoint;
use crate::running::sampling;
use rb_sys::RUBY_INTERNAL_EVENT_SWITCH as SWITCH;

/// The hook.
pub static HOOK: EventHook = EventHook::internal::<TimeSlices>(SWITCH);

struct TimeSlices;

impl OnInternalEvent for TimeSlices {
    fn happened(gvl: AnyGvl<'_>, _: u32) {
        let AnyGvl::Main(gvl) = gvl else {
            return;
        };
        sampling::with_counting_session(&gvl, |session| {
            // A trigger from a Ruby thread reaches that thread.
            if session.ticks.is_callback_due() {
                safepoint::trigger();
            }
        });
    }
}

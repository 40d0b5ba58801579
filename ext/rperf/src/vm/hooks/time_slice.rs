//! The hook on the VM's time slices, for stacks that are taken at safepoints. A new
//! thread makes itself the one that triggers of the sampling callback reach before it
//! has the GVL, and until the VM's next switch of threads, up to 100 ms later, they miss
//! the thread that runs. While a thread waits for the GVL, the VM interrupts the running
//! one every 10 ms: this hook, on that thread, asks for the callback anew.

use crate::ruby::event_hook::EventHook;
use crate::ruby::ractor::AnyGvl;
use crate::ruby::safepoint;
use crate::vm::state::session;
use rb_sys::{ID, RUBY_INTERNAL_EVENT_SWITCH as SWITCH, VALUE};

/// The hook. Internal events don't switch on tracing of Ruby code.
pub static HOOK: EventHook = EventHook::new(on_switch, SWITCH);

unsafe extern "C" fn on_switch(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    // SAFETY: on a thread that runs Ruby code.
    if let AnyGvl::Main(gvl) = unsafe { AnyGvl::assume_held() } {
        session::with_counting_session(&gvl, |session| {
            // A trigger from a Ruby thread reaches that thread.
            if session.ticks.is_callback_due() {
                safepoint::trigger();
            }
        });
    }
}

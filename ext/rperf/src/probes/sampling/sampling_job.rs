//! The sampling callback: the VM runs it at a safepoint after a tick, on the
//! thread that holds the GVL, of whichever Ractor gets there first.

use super::gc;
use crate::recording::{epoch, sample};
use crate::ruby::frames::RubyVm;
use crate::ruby::threads::RubyThread;
use crate::running::sampling::{self, counting_session};
use rperf_sampling::HandlerOff;
use std::ffi::c_void;

/// The callback.
pub unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    // SAFETY: on a thread that runs Ruby code.
    unsafe {
        sampling::in_main_ractor(|gvl| {
            // To the end: while frames are named, too.
            let _handler_off = HandlerOff::begin();
            if let Some(session) = counting_session(gvl) {
                gc::listen(session);
                let thread = RubyThread::current(gvl).state(gvl, &session.turnover.new);
                let learned = session.learn(&RubyVm::new(gvl), gvl, thread);
                sample::complete(gvl, session, session.sample(gvl, thread, learned));
            }
            epoch::work_on_end(gvl);
        });
    }
}

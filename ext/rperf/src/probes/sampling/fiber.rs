//! The fiber event hook: gives new fibers the labels that they inherit, and stacks the labels
//! of the fiber that they were taken in. It is there
//! only while a session runs, time counts, and labels have been used: it costs
//! each switch between fibers some tens of ns. Runs on the thread whose fiber has
//! got control, with the GVL; Ruby code may be run.

use crate::recording::sample;
use crate::ruby::event_hook::EventHook;
use crate::ruby::threads::RubyThread;
use crate::running::sampling::{in_main_ractor, sampling};
use crate::running::{derived_labels, label_set};
use magnus::Error;
use rb_sys::{ID, RUBY_EVENT_FIBER_SWITCH as FIBER_SWITCH, VALUE};
use rperf_sampling::{AtWork, RunningSession};
use rperf_vm::Gvl;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Whether the hook is registered.
static IS_ADDED: AtomicBool = AtomicBool::new(false);

/// The hook on switches of fibers. Its event comes from C code of the VM's: no Ruby code is
/// compiled anew for it.
static HOOK: EventHook = EventHook::new(on_switch, FIBER_SWITCH);

/// Registers the hook, unless it is there. With the GVL, outside of hooks.
pub fn add() {
    if !IS_ADDED.swap(true, SeqCst) {
        HOOK.add();
    }
}

/// Registers the hook if there is need of it, as a fiber gets labels. Outside of hooks.
pub fn add_if_needed(gvl: &Gvl<'_>, session: &RunningSession) {
    if label_set::are_used(gvl) && session.sections.are_open() && !IS_ADDED.load(SeqCst) {
        add();
    }
}

/// Removes the hook, if it is there. With the GVL.
pub fn remove() {
    if IS_ADDED.swap(false, SeqCst) {
        HOOK.remove();
    }
}

unsafe extern "C" fn on_switch(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    let mut interrupt = None;
    // SAFETY: on a thread that runs Ruby code. As an interrupt goes on, nothing on this
    // function's stack is left to be dropped.
    unsafe {
        in_main_ractor(|gvl| interrupt = switched(gvl).err());
        if let Some(interrupt) = interrupt {
            magnus::rb_sys::resume_error(interrupt);
        }
    }
}

/// The calling thread has switched to another fiber. Fails if an interrupt comes meanwhile.
fn switched(gvl: &mut Gvl<'_>) -> Result<(), Error> {
    let adopted = derived_labels::adopt(gvl);
    // Other threads may have run, and ended the session.
    if let Some(session) = sampling(gvl) {
        note_present(gvl, session);
    }
    adopted
}

/// Notes the labels of the calling thread's present fiber, after samples have been made of what
/// was taken before.
pub fn note_present(gvl: &Gvl<'_>, session: &RunningSession) {
    let thread = RubyThread::current(gvl);
    let labels = label_set::noted(gvl, thread);
    if let Some(state) = thread.known_state(gvl) {
        let guard = AtWork::begin(gvl);
        let follow_up = session.fiber_switched(gvl, state, &guard, labels);
        sample::complete(gvl, session, follow_up);
    }
}

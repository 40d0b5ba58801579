//! The end of an epoch: names take the place of frames, and what the frames kept
//! alive may be collected. With the GVL, outside of hooks: it makes Ruby objects.

use crate::vm::recording::resolve;
use crate::vm::{Inner, LIVE, Live};
use std::ptr;
use std::sync::atomic::Ordering::Acquire;

/// Ends the epoch of the running session.
pub fn end(live: &'static Live) {
    // SAFETY: the GVL is held, and nothing in this block releases it.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    live.new_threads.take_into(&mut inner.threads);
    inner.session.begin_epoch_end();
    forget_places(&inner);
    drop(inner);
    // Naming a frame runs the VM's code. Should it ever let another thread run, and
    // that one end the session, `live` is gone.
    let lives = || ptr::eq(LIVE.load(Acquire), live);
    let names = resolve::resolve_all(|row| {
        if !lives() {
            return None;
        }
        // SAFETY: the GVL is held; the borrow ends with this closure.
        let inner = unsafe { live.inner.try_borrow() }?;
        inner.session.ending_frame(row)
    });
    if !lives() {
        return;
    }
    // SAFETY: the GVL is held, and nothing below releases it.
    if let Some(mut inner) = unsafe { live.inner.try_borrow() } {
        inner.session.end_epoch(names);
    }
}

/// Lets all threads forget their stacks, and where their last samples went: the call
/// tree is another one.
pub fn forget_places(inner: &Inner) {
    for state in &inner.threads {
        // SAFETY: the GVL is held, as the session is borrowed, and no other reference
        // to the part exists.
        let part = unsafe { state.gvl_part() };
        part.last_stack.keep(0);
        if let Some(accounting) = &mut part.accounting {
            accounting.forget_places();
        }
    }
}

//! What the program has printed and Ruby still holds. On Ruby threads of the main Ractor, with the GVL.

use crate::interrupts::Interrupts;
use magnus::rb_sys::protect;
use rperf_session::output::descriptor_of;
use std::path::Path;

/// What the program has printed comes before a profile that goes to the same place. If nobody reads it,
/// or `$stdout` is an object of the program's that can't be flushed, the profile fares as it will.
pub fn flush_before(path: &Path, interrupts: &mut Interrupts) {
    if descriptor_of(path).is_none_or(|it| it.number() != 1) {
        return;
    }
    let flush = || {
        // SAFETY: a Ruby thread with the GVL; the variable holds an object that can be written to, as
        // Ruby sees to; `protect` catches what is raised.
        unsafe { protect(|| rb_sys::rb_io_flush(rb_sys::rb_stdout)) }.map(drop)
    };
    // If it can't be flushed, that is met each time; what a handler of a signal raises, once.
    let _ = interrupts.if_possible(flush);
}

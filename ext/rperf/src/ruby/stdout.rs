//! What the program has printed and Ruby still holds. On Ruby threads of the main Ractor, with the GVL.

use crate::interrupts::Interrupts;
use magnus::Ruby;
use magnus::rb_sys::protect;
use rperf_session::output::Descriptor;
use std::path::Path;

/// What the program has printed comes before a profile that goes to the same place. If nobody reads it,
/// or `$stdout` is an object of the program's that can't be flushed, the profile fares as it will.
pub fn flush_before(path: &Path, interrupts: &mut Interrupts) {
    if Descriptor::named_by(path).is_none_or(|it| it.number() != 1) {
        return;
    }
    // SAFETY: a Ruby thread with the GVL; the variable holds an object that can be written to, as Ruby
    // sees to; `protect` catches what is raised.
    let flushed = unsafe { protect(|| rb_sys::rb_io_flush(rb_sys::rb_stdout)) };
    let Err(error) = flushed else {
        return;
    };
    if let Some(exception) = error.value()
        && error.is_kind_of(Ruby::get_with(exception).exception_standard_error())
    {
        return;
    }
    interrupts.keep(error);
}

//! Changes of the environment that programs started from now on get. On Ruby threads with the GVL, under
//! which Ruby changes it, too.

use magnus::rb_sys::protect;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

/// Gives a variable this value, or takes it away.
pub fn set(name: &OsStr, value: Option<&OsStr>) {
    let text = |text: &OsStr| CString::new(text.as_bytes()).ok();
    let Some(name) = text(name) else {
        return;
    };
    let value = value.and_then(text);
    let value = value.as_ref().map_or(ptr::null(), |it| it.as_ptr());
    // SAFETY: a Ruby thread with the GVL; both end with a zero byte and outlive the call. `protect` catches
    // what is raised where the system takes no more variables: the program goes on without.
    let _ = unsafe {
        protect(|| {
            rb_sys::ruby_setenv(name.as_ptr(), value);
            rb_sys::Qnil as rb_sys::VALUE
        })
    };
}

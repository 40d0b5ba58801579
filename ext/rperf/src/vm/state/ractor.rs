//! The main Ractor, which alone is profiled, and others.

use magnus::{Error, Ruby, Value, prelude::*};
use rperf_engine::Gvl;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Key whose value is non-null in the main Ractor only; a pointer, by its address.
static KEY: OnceLock<usize> = OnceLock::new();

/// Makes the key that tells the main Ractor from others. On the main Ractor, once.
pub fn mark_main() {
    static MARK: u8 = 0;
    // The VM calls `free` with the value when the main Ractor ends.
    extern "C" fn free(_: *mut c_void) {}
    struct Type(rb_sys::rb_ractor_local_storage_type);
    // SAFETY: two function pointers, never written.
    unsafe impl Sync for Type {}
    static TYPE: Type = Type(rb_sys::rb_ractor_local_storage_type {
        mark: None,
        free: Some(free),
    });
    KEY.get_or_init(|| {
        let mark = (&raw const MARK).cast_mut().cast();
        // SAFETY: TYPE lives for ever, and this runs on the main Ractor with its GVL. The VM
        // hands the value back, no more.
        unsafe {
            let key = rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const TYPE.0);
            rb_sys::rb_ractor_local_storage_ptr_set(key, mark);
            key.expose_provenance()
        }
    });
}

/// Whether the calling thread belongs to the main Ractor.
///
/// # Safety
/// It is a thread that runs Ruby code: not in STARTED or READY.
#[inline]
pub unsafe fn is_main() -> bool {
    KEY.get().is_some_and(|&key| {
        let key = std::ptr::with_exposed_provenance_mut(key);
        // SAFETY: the key is valid; the rest by this function's contract.
        !unsafe { rb_sys::rb_ractor_local_storage_ptr(key) }.is_null()
    })
}

/// Whether there are other Ractors than the main one. Runs Ruby code.
pub fn are_there_others(ruby: &Ruby, _: &mut Gvl<'_>) -> Result<bool, Error> {
    let ractor: Value = ruby.class_object().const_get("Ractor")?;
    let count: usize = ractor.funcall("count", ())?;
    Ok(count > 1)
}

//! Facts about the native thread at hand: whether it runs the main Ractor, its
//! id, and which Ruby thread ran on it last.

use super::Process;
use super::thread_state::ThreadState;
use rperf_engine::clock;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

thread_local! {
    /// The Ruby thread that last ran on this native thread. Constant and without
    /// a destructor, so that access never allocates.
    static LAST_RUN: Cell<*const ThreadState> = const { Cell::new(ptr::null()) };
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Notes that `state`'s thread runs here. Returns whether another one ran here
/// before, so that the CPU clock doesn't speak of this thread alone.
#[inline]
pub fn switch_to(state: &ThreadState) -> bool {
    !ptr::eq(LAST_RUN.replace(state), state)
}

/// Forgets the Ruby thread, which has ended: its memory may be another's soon.
pub fn leave() {
    LAST_RUN.set(ptr::null());
}

/// The kernel's id of this thread, asked for once.
#[inline]
pub fn id() -> u32 {
    let mut id = ID.get();
    if id == 0 {
        id = clock::thread_id();
        ID.set(id);
    }
    id
}

/// This thread's pthread: cheap to ask for, and the same for its whole life.
#[inline]
pub fn pthread() -> usize {
    // SAFETY: takes nothing and can't fail.
    unsafe { libc::pthread_self() as usize }
}

/// In a forked child: this thread has a new id.
pub fn forget_id() {
    ID.set(0);
}

/// Makes the key that tells the main Ractor from others. On the main Ractor.
pub fn mark_main_ractor() -> rb_sys::rb_ractor_local_key_t {
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
    // SAFETY: TYPE lives for ever; this runs on the main Ractor with its GVL.
    let key = unsafe { rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const TYPE.0) };
    let mark = (&raw const MARK).cast_mut().cast();
    // SAFETY: the key was just made; the VM hands the pointer back, no more.
    unsafe { rb_sys::rb_ractor_local_storage_ptr_set(key, mark) };
    key
}

/// Whether the calling Ruby thread belongs to the main Ractor. For threads that
/// run Ruby code: not in STARTED or READY.
#[inline]
pub fn in_main_ractor(process: &Process) -> bool {
    // SAFETY: the key is valid, and the caller is a Ruby thread of some Ractor.
    !unsafe { rb_sys::rb_ractor_local_storage_ptr(process.main_ractor_key) }.is_null()
}

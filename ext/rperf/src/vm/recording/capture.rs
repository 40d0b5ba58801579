//! Backtraces, and the object that keeps captured frames alive.

use crate::vm::state::backtrace::Scratch;
use crate::vm::{LIVE, PROCESS};
use rb_sys::VALUE;
use rperf_engine::{FrameWord, Stack};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Acquire;

/// Whose backtrace to take.
#[derive(Clone, Copy)]
pub enum Whose {
    /// The calling thread's.
    Current,
    /// So many frames of the calling thread's, from the root.
    CurrentUpTo(usize),
    /// Another thread's, which must be alive.
    Other(VALUE),
}

/// Takes the backtrace of `whose` thread into `scratch`; `None` if that isn't possible
/// now. With the GVL.
pub fn take(scratch: &mut Scratch, whose: Whose) -> Option<Stack<'_>> {
    if let Whose::Other(thread) = whose {
        let depth = scratch.take_other(thread)?;
        return Some(scratch.stack(depth));
    }
    let depth = scratch.take_current()?;
    if depth > 0 {
        scratch.complete_line_of_leaf();
    }
    Some(match whose {
        Whose::CurrentUpTo(frames) => scratch.stack_up_to(frames, depth),
        _ => scratch.stack(depth),
    })
}

/// Tells the collector of frames that have just entered the frame table. With the GVL.
pub fn keep_alive(frames: &[FrameWord]) {
    let Some(process) = PROCESS.get() else {
        return;
    };
    for &frame in frames {
        // SAFETY: both are live objects, and `frame` is in the frame table, where the
        // roots' mark function finds it. The barrier allocates nothing and may be used
        // in hooks.
        unsafe { rb_sys::rb_gc_writebarrier(process.frame_roots, frame as VALUE) };
    }
}

const _: () = assert!(size_of::<VALUE>() == size_of::<FrameWord>());

struct FrameRootsType(rb_sys::rb_data_type_t);
// SAFETY: function pointers and constants, never written.
unsafe impl Sync for FrameRootsType {}

/// The VM's view of the frame table. With the write barrier kept (`keep_alive`) a
/// minor collection skips it once it is old.
static FRAME_ROOTS: FrameRootsType = FrameRootsType(rb_sys::rb_data_type_t {
    wrap_struct_name: c"rperf frame roots".as_ptr(),
    function: rb_sys::rb_data_type_struct__bindgen_ty_1 {
        dmark: Some(mark_frames),
        dfree: Some(end_with_vm),
        dsize: Some(memory_size),
        dcompact: None,
        reserved: [ptr::null_mut(); 1],
    },
    parent: ptr::null(),
    data: ptr::null_mut(),
    flags: rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_WB_PROTECTED as VALUE
        | rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE,
});

/// Makes the object, which lives as long as the process. With the GVL.
pub fn new_frame_roots() -> VALUE {
    new_permanent_object(&FRAME_ROOTS.0)
}

/// An object of `data_type` that lives as long as the process. With the GVL.
pub fn new_permanent_object(data_type: &'static rb_sys::rb_data_type_t) -> VALUE {
    // The VM marks only objects with non-null data.
    static DATA: u8 = 0;
    let data: *mut c_void = (&raw const DATA).cast_mut().cast();
    // SAFETY: the type lives for ever and its functions fit; rb_cObject is a class.
    let object = unsafe { rb_sys::rb_data_typed_object_wrap(rb_sys::rb_cObject, data, data_type) };
    // SAFETY: registers a live object to be kept for ever.
    unsafe { rb_sys::rb_gc_register_mark_object(object) };
    object
}

/// Marks, and so pins, every captured frame. In GC, on any Ractor's thread.
unsafe extern "C" fn mark_frames(_: *mut c_void) {
    // SAFETY: LIVE is freed under the main Ractor's GVL and not while a
    // collection runs, as freeing it allocates no Ruby object.
    let Some(live) = (unsafe { LIVE.load(Acquire).as_ref() }) else {
        return;
    };
    // SAFETY: a collection runs only at the VM's safepoints, and a borrower of
    // the cell reaches none: nothing writes to the frame table meanwhile.
    for frame in unsafe { live.inner.peek() }.session.frames() {
        // SAFETY: the table holds live objects only: they were marked each time.
        unsafe { rb_sys::rb_gc_mark(frame as VALUE) };
    }
}

/// The VM frees its last objects: all at_exit blocks and finalizers are done, and
/// the VM itself is there still. The worker, which calls into it, must end now.
unsafe extern "C" fn end_with_vm(_: *mut c_void) {
    crate::vm::end_with_vm();
}

unsafe extern "C" fn memory_size(_: *const c_void) -> rb_sys::size_t {
    // SAFETY: called with the GVL (ObjectSpace.memsize_of) or in GC; see above.
    let Some(live) = (unsafe { LIVE.load(Acquire).as_ref() }) else {
        return 0;
    };
    // SAFETY: as in `mark_frames`.
    let inner = unsafe { live.inner.peek() };
    let memory = inner.session.memory()
        + inner.scratch.memory()
        + live.tick_capture.memory()
        + inner.threads_memory();
    memory as rb_sys::size_t
}

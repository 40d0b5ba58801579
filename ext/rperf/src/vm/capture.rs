//! Backtraces, and the object that keeps captured frames alive.

use super::leaf::StackAtTick;
use super::{LIVE, PROCESS};
use rb_sys::VALUE;
use rperf_engine::{FrameWord, Stack, StackSource};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::Acquire;

/// Frames of a backtrace at most. The default VM stack of a thread (1 MB) holds
/// some 11,000; of deeper ones the frames nearest to the leaf are kept.
const MAX_DEPTH: usize = 16_384;

/// Where the VM writes a backtrace; allocated once per session.
pub struct Scratch {
    frames: Vec<VALUE>,
    /// Empty if lines are not wanted.
    lines: Vec<i32>,
}

impl Scratch {
    pub fn new(with_lines: bool) -> Self {
        // Zeroed memory comes from the system untouched: only what the deepest
        // stack needs is ever resident.
        let lines = if with_lines { MAX_DEPTH } else { 0 };
        Self {
            frames: vec![0; MAX_DEPTH],
            lines: vec![0; lines],
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(self.frames.as_slice()) + size_of_val(self.lines.as_slice())
    }

    /// Takes the backtrace of the calling Ruby thread, which has the GVL.
    /// Async-signal-safe.
    pub fn take_current(&mut self) -> Option<Stack<'_>> {
        // SAFETY: the buffers hold as many frames and lines as said, or lines are
        // null. The call allocates nothing and doesn't raise.
        let depth = self.take(|limit, frames, lines| unsafe {
            rb_sys::rb_profile_frames(0, limit, frames, lines)
        })?;
        Some(self.stack(depth))
    }

    fn take(&mut self, ask: impl FnOnce(i32, *mut VALUE, *mut i32) -> i32) -> Option<usize> {
        let lines = match self.lines.as_mut_slice() {
            [] => ptr::null_mut(),
            lines => lines.as_mut_ptr(),
        };
        let depth = ask(MAX_DEPTH as i32, self.frames.as_mut_ptr(), lines);
        usize::try_from(depth)
            .ok()
            .map(|depth| depth.min(MAX_DEPTH))
    }

    /// The first `depth` frames.
    pub fn stack(&self, depth: usize) -> Stack<'_> {
        let frames = &self.frames[..depth];
        let lines = &self.lines[..depth.min(self.lines.len())];
        // SAFETY: VALUE and FrameWord are both pointer-sized unsigned integers.
        let frames = unsafe { std::slice::from_raw_parts(frames.as_ptr().cast(), depth) };
        // SAFETY: i32 and u32 have the same size; a line is never negative.
        let lines = unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), lines.len()) };
        Stack {
            frames,
            lines,
            cut: depth == MAX_DEPTH,
        }
    }

    /// Sets the line of the leaf, if there are lines.
    pub fn set_leaf_line(&mut self, line: u32) {
        if let Some(leaf) = self.lines.first_mut() {
            *leaf = line as i32;
        }
    }

    /// The VM gives no line for a topmost frame that is compiled, as it may be
    /// anywhere. At a safepoint and in hooks it has one all the same: errors are
    /// raised and objects allocated there, which needs the line.
    fn complete_line_of_leaf(&mut self) {
        if let (Some(line @ 0), Some(&frame)) = (self.lines.first_mut(), self.frames.first()) {
            // SAFETY: the frame is on the stack, and so alive.
            if !unsafe { is_c_method(frame) } {
                // SAFETY: on a Ruby thread with the GVL; only reads.
                *line = unsafe { rb_sys::rb_sourceline() };
            }
        }
    }
}

/// Whether `frame` is a method of C. Makes no object.
///
/// # Safety
/// It is a frame, and alive; the caller has the GVL.
pub unsafe fn is_c_method(frame: VALUE) -> bool {
    // SAFETY: by this function's contract. The result is nil for a C method, else a
    // small Integer.
    unsafe { rb_sys::rb_profile_frame_first_lineno(frame) == rb_sys::Qnil as VALUE }
}

/// Whose backtrace to take.
#[derive(Clone, Copy)]
pub enum Whose<'a> {
    /// The calling thread's: the one taken at the tick, if there is one.
    Current(Option<&'a StackAtTick<'a>>),
    /// Another thread's, which must be alive.
    Other(VALUE),
}

/// Whether `thread`, whose object is alive, has begun to run and not ended. With
/// the GVL.
pub fn has_frames(thread: VALUE) -> bool {
    let mut frame = 0;
    // SAFETY: a thread's object is alive; one frame fits. A thread without a stack
    // has no frames.
    unsafe { rb_sys::rb_profile_thread_frames(thread, 0, 1, &raw mut frame, ptr::null_mut()) > 0 }
}

/// A thread's backtrace, for the engine.
pub struct VmStack<'a> {
    scratch: &'a mut Scratch,
    whose: Whose<'a>,
}

impl<'a> VmStack<'a> {
    /// The backtrace of `whose` thread, taken into `scratch`.
    pub fn new(scratch: &'a mut Scratch, whose: Whose<'a>) -> Self {
        Self { scratch, whose }
    }
}

impl StackSource for VmStack<'_> {
    fn capture(&mut self) -> Option<Stack<'_>> {
        let scratch = &mut *self.scratch;
        let slot = match self.whose {
            Whose::Other(thread) => {
                // SAFETY: as in `take_current`, and the thread is alive: its EXITED
                // has not come.
                let depth = scratch.take(|limit, frames, lines| unsafe {
                    rb_sys::rb_profile_thread_frames(thread, 0, limit, frames, lines)
                })?;
                return Some(scratch.stack(depth));
            }
            Whose::Current(slot) => slot,
        };
        let depth = scratch.take_current()?.frames.len();
        if depth > 0 {
            scratch.complete_line_of_leaf();
        }
        let found = scratch.stack(depth);
        Some(slot.and_then(|slot| slot.confirmed(found)).unwrap_or(found))
    }

    fn new_frame(&mut self, frame: FrameWord) {
        if let Some(process) = PROCESS.get() {
            // SAFETY: both are live objects, and `frame` is in the frame table,
            // where the roots' mark function finds it. The barrier allocates
            // nothing and may be used in hooks.
            unsafe { rb_sys::rb_gc_writebarrier(process.frame_roots, frame as VALUE) };
        }
    }
}

const _: () = assert!(size_of::<VALUE>() == size_of::<FrameWord>());

struct FrameRootsType(rb_sys::rb_data_type_t);
// SAFETY: function pointers and constants, never written.
unsafe impl Sync for FrameRootsType {}

/// The VM's view of the frame table. With the write barrier kept (`new_frame`) a
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
    super::end_with_vm();
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
        + live.slot.memory()
        + inner.threads_memory();
    memory as rb_sys::size_t
}

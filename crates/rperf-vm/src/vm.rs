//! The questions that the engine asks the VM as it reads a stack at a tick, and as it learns of a frame
//! that the VM leaves out; the bridge answers, and calls nothing of the engine for it. In the signal
//! handler of a tick, and at a safepoint.
//!
//! The answers are asked for one by one, as each question depends on the answer before: only
//! frames that are new are looked at, and a line of compiled code is asked for while the frame's
//! program counter is another one.

mod kinds;
mod layout;
mod memory;

use crate::ids::{FiberWord, FrameWord};
pub use kinds::FrameKinds;
pub use layout::{BlockLayout, FrameLayout, LateFrames, LateFramesFound, Unknown};
pub use memory::{Checked, MayFault, Memory};

/// A VM's stack, of the Ruby thread that is calling and has the GVL. No answer makes an object
/// or takes a lock, and all are async-signal-safe; at an arbitrary point of the program reading
/// the stack may fault.
pub trait VmFrames {
    /// Where the VM's own structures have their fields, or why that isn't known of this VM.
    fn layout(&self) -> Result<&'static FrameLayout, Unknown>;

    /// Whether a compiler is on that fills control frames late: the line that the VM tells of a frame
    /// of its code may be one of long ago. Async-signal-safe.
    fn fills_frames_late(&self) -> bool;

    /// The execution context of the calling thread; 0 if it isn't known.
    fn context(&self) -> usize;

    /// The line of an instruction, by its place in words; 0 if the VM has none.
    ///
    /// # Safety
    /// This is an instruction sequence that is alive, and has an instruction there.
    unsafe fn line_at(&self, iseq: FrameWord, place: usize) -> u32;

    /// Writes the thread's frames, leaf first, and their lines unless `lines` is empty. Returns
    /// how many there are; no more than fit. Where the VM's data is known, frames tell how many blocks
    /// are around them ([`blocks_around`](crate::blocks_around)).
    fn backtrace(&self, frames: &mut [FrameWord], lines: &mut [u32]) -> usize;

    /// How many frames the VM's stack has, with those that backtraces leave out.
    fn depth(&self) -> i64;

    /// How many blocks are around the topmost Ruby frame, also one that backtraces leave out; 0 if that
    /// can't be told.
    fn blocks_around_top(&self) -> usize;

    /// The line of the topmost Ruby frame. If its program counter is null, the line where its
    /// method or block begins.
    fn line(&self) -> u32;

    /// The thread's present fiber, once the labels of one of its fibers have been noted.
    fn fiber(&self) -> FiberWord;

    /// Where the VM holds the name of that frame's file.
    fn file(&self) -> usize;

    /// The method of the topmost frame and the class that has it; 0 outside of methods.
    fn method(&self) -> (MethodWord, FrameWord);

    /// Whether all of these words are frames, by the objects that they point to.
    ///
    /// # Safety
    /// They are from [`VmFrames::backtrace`]. If they are no objects, reading them may fault.
    unsafe fn are_frames(&self, words: &[FrameWord]) -> bool;

    /// Whether the object is an instruction sequence.
    ///
    /// # Safety
    /// A word can be read there, or the caller is ready for a fault.
    unsafe fn is_code(&self, object: FrameWord) -> bool;

    /// Whether a frame is a method of C.
    ///
    /// # Safety
    /// It is alive: on the stack, or in the frame table.
    unsafe fn is_c_method(&self, frame: FrameWord) -> bool {
        // SAFETY: by this function's contract.
        unsafe { self.first_line_of(frame) }.is_none()
    }

    /// Where the VM holds the name of a frame's file; 0 for a method of C.
    ///
    /// # Safety
    /// The conditions are those of [`VmFrames::is_c_method`].
    unsafe fn file_of(&self, frame: FrameWord) -> usize;

    /// The line where a frame's method or block begins; `None` for a method of C.
    ///
    /// # Safety
    /// The conditions are those of [`VmFrames::is_c_method`].
    unsafe fn first_line_of(&self, frame: FrameWord) -> Option<u32>;

    /// Whether a frame's method has this name, or is a block in one that has it.
    ///
    /// # Safety
    /// The conditions are those of [`VmFrames::is_c_method`]; the name is from
    /// [`VmFrames::method`].
    unsafe fn has_name(&self, frame: FrameWord, method: MethodWord) -> bool;
}

/// The VM in the handler of a tick's signal, which may have interrupted it anywhere.
pub trait TickVm: VmFrames {
    /// The VM as the calling thread sees it.
    ///
    /// # Safety
    /// That one has its Ractor's GVL, for as long as the result is used.
    unsafe fn of_calling_thread() -> Self;

    /// Whether garbage is being collected in the heap of the calling thread's Ractor, which may be
    /// that of all. It is so through each collection for which all Ractors stop: only there objects
    /// move that this thread's stack leads to.
    fn is_collecting(&self) -> bool;

    /// How many collections have begun in that heap, but for those of all heaps that another Ractor has
    /// begun.
    fn collections(&self) -> u64;
}

/// A method's name as the VM holds it; 0 is none.
pub type MethodWord = usize;

#[cfg(any(test, feature = "fake-vm"))]
pub mod fake;

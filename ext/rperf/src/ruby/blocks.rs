//! Which frames are blocks, where the VM shows the method that has them: whether that can be told of
//! this VM, and the marking of backtraces. With the GVL, and in the signal handler of a tick.

use super::{ractor, version};
use rperf_vm::{Checked, FrameLayout, FrameWord, MayFault, StackDigest, Unknown, VmFrames};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Where the VM has its data, once that was looked at.
static LAYOUT: OnceLock<&FrameLayout> = OnceLock::new();

/// Why that isn't known, if it was looked at in vain.
static REASON: AtomicU8 = AtomicU8::new(OTHER_FORM);

const OTHER_FORM: u8 = 0;
const OTHER_VERSION: u8 = 1;
const NO_ACCESS: u8 = 2;

/// Frames at most that are compared with what the VM tells.
const COMPARED: usize = 16;

/// Compares the calling thread's control frames with its backtrace, which `frames_of` writes, to see
/// whether blocks can be told; once, if they can. Outside of hooks.
pub fn learn(vm: &impl VmFrames, frames_of: impl FnOnce(&mut [FrameWord]) -> usize) {
    if LAYOUT.get().is_some() {
        return;
    }
    let reason = match look(vm, frames_of) {
        Ok(layout) => {
            LAYOUT.get_or_init(|| layout);
            return;
        }
        Err(Unknown::Version) => OTHER_VERSION,
        Err(Unknown::Form) => OTHER_FORM,
        Err(Unknown::Access) => NO_ACCESS,
    };
    REASON.store(reason, Relaxed);
}

fn look(
    vm: &impl VmFrames,
    frames_of: impl FnOnce(&mut [FrameWord]) -> usize,
) -> Result<&'static FrameLayout, Unknown> {
    ractor::known_layout()?;
    let layout = version::frame_layout()?;
    let memory = Checked::new().ok_or(Unknown::Access)?;
    let mut frames = [0; COMPARED];
    let depth = frames_of(&mut frames);
    let fits = depth > 0 && layout.mark_blocks(vm, &memory, vm.context(), &mut frames[..depth]);
    fits.then_some(layout).ok_or(Unknown::Form)
}

/// Why blocks can't be told, if they can't.
pub fn unknown() -> Option<Unknown> {
    if LAYOUT.get().is_some() {
        return None;
    }
    Some(match REASON.load(Relaxed) {
        OTHER_VERSION => Unknown::Version,
        NO_ACCESS => Unknown::Access,
        _ => Unknown::Form,
    })
}

/// How many blocks are around the topmost frame of Ruby of the thread with this `context`; 0 if that
/// can't be told.
///
/// # Safety
/// The caller is ready for a fault.
pub unsafe fn around_top(context: usize) -> usize {
    let Some(layout) = LAYOUT.get().filter(|_| context != 0) else {
        return 0;
    };
    // SAFETY: by this function's contract.
    let memory = unsafe { MayFault::new() };
    layout.blocks_around_top(&memory, context).unwrap_or(0)
}

/// A number for where the calling thread, with this `context`, is in the program; 0 if that isn't known.
///
/// # Safety
/// It has its Ractor's GVL.
#[inline]
pub unsafe fn place(context: usize) -> usize {
    let Some(layout) = LAYOUT.get().filter(|_| context != 0) else {
        return 0;
    };
    // SAFETY: the context belongs to the thread, and so does the VM stack that it names, within which
    // frames are read; a thread that has ended has one of no size.
    let memory = unsafe { MayFault::new() };
    layout.place(&memory, context).unwrap_or(0)
}

/// Whether the VM can look up the line of the topmost frame of the calling thread, which has this
/// `context`: the frame is of Ruby code, and its program counter belongs to it.
///
/// # Safety
/// The thread has its Ractor's GVL, and is at a safepoint or in a hook of its own.
pub unsafe fn is_top_placed(vm: &impl VmFrames, context: usize) -> bool {
    let Some(layout) = LAYOUT.get().filter(|_| context != 0) else {
        return false;
    };
    // SAFETY: the context belongs to the thread. Its topmost frame has an object that is alive as long as
    // it runs: an instruction sequence, or that of a block of C, whose words that are taken for addresses
    // lead to code.
    let memory = unsafe { MayFault::new() };
    layout.is_top_placed(vm, &memory, context).unwrap_or(false)
}

/// The digest of the stack of the calling thread, which has this `context`, if there is one.
///
/// # Safety
/// It has its Ractor's GVL, and is at a safepoint or in a hook of its own.
#[inline]
pub unsafe fn digest(vm: &impl VmFrames, context: usize, collections: u64) -> Option<StackDigest> {
    let layout = LAYOUT.get().filter(|_| context != 0)?;
    // SAFETY: the context belongs to the thread, and so does the VM stack that it names. The VM keeps its
    // control frames and their environments whole there, and environments in the heap as long as these
    // lead to them.
    let memory = unsafe { MayFault::new() };
    layout.digest(vm, &memory, context, collections)
}

/// Notes in a backtrace, from its leaf on, how many blocks are around each frame. `context`: of its
/// thread.
///
/// # Safety
/// The VM has just read these frames, and the thread hasn't run since; or the caller is ready for a
/// fault.
#[inline]
pub unsafe fn mark(vm: &impl VmFrames, context: usize, frames: &mut [FrameWord]) {
    let Some(layout) = LAYOUT.get().filter(|_| context != 0) else {
        return;
    };
    // SAFETY: by this function's contract. The VM has read the same words to find the frames, but for
    // environments around those that it has read, which keep them alive.
    let memory = unsafe { MayFault::new() };
    layout.mark_blocks(vm, &memory, context, frames);
}

//! Which frames are blocks, where the VM shows the method that has them: whether that can be told of
//! this VM, and the marking of backtraces. With the GVL, and in the signal handler of a tick.

use super::{ractor, version};
use rperf_engine::{Checked, FrameWord, MayFault, Unknown, VmFrames};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is known of the VM, in one byte that the signal handler can read.
static KNOWLEDGE: AtomicU8 = AtomicU8::new(NOT_LOOKED);

const NOT_LOOKED: u8 = 0;
const KNOWN: u8 = 1;
const OTHER_VERSION: u8 = 2;
const OTHER_FORM: u8 = 3;
const NO_ACCESS: u8 = 4;

/// Frames at most that are compared with what the VM tells.
const COMPARED: usize = 16;

/// Compares the calling thread's control frames with its backtrace, which `frames_of` writes, to see
/// whether blocks can be told; once, if they can. Outside of hooks.
pub fn learn(vm: &impl VmFrames, frames_of: impl FnOnce(&mut [FrameWord]) -> usize) {
    if KNOWLEDGE.load(Relaxed) == KNOWN {
        return;
    }
    let found = match look(vm, frames_of) {
        Ok(()) => KNOWN,
        Err(Unknown::Version) => OTHER_VERSION,
        Err(Unknown::Form) => OTHER_FORM,
        Err(Unknown::Access) => NO_ACCESS,
    };
    KNOWLEDGE.store(found, Relaxed);
}

fn look(
    vm: &impl VmFrames,
    frames_of: impl FnOnce(&mut [FrameWord]) -> usize,
) -> Result<(), Unknown> {
    ractor::known_layout()?;
    let layout = version::frame_layout()?;
    let memory = Checked::new().ok_or(Unknown::Access)?;
    let mut frames = [0; COMPARED];
    let depth = frames_of(&mut frames);
    let fits = depth > 0 && layout.mark_blocks(vm, &memory, vm.context(), &mut frames[..depth]);
    fits.then_some(()).ok_or(Unknown::Form)
}

/// Why blocks can't be told, if they can't.
pub fn unknown() -> Option<Unknown> {
    match KNOWLEDGE.load(Relaxed) {
        KNOWN => None,
        OTHER_VERSION => Some(Unknown::Version),
        NO_ACCESS => Some(Unknown::Access),
        _ => Some(Unknown::Form),
    }
}

/// Notes in a backtrace, from its leaf on, how many blocks are around each frame. `context`: of its
/// thread.
///
/// # Safety
/// The VM has just read these frames, and the thread hasn't run since; or the caller is ready for a
/// fault.
#[inline]
pub unsafe fn mark(vm: &impl VmFrames, context: usize, frames: &mut [FrameWord]) {
    if KNOWLEDGE.load(Relaxed) != KNOWN || context == 0 {
        return;
    }
    let Ok(layout) = version::frame_layout() else {
        return;
    };
    // SAFETY: by this function's contract. The VM has read the same words to find the frames.
    let memory = unsafe { MayFault::new() };
    layout.mark_blocks(vm, &memory, context, frames);
}

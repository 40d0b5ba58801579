//! The room that a handler has on its thread's signal stack, which nothing guards: a handler that needs
//! more than there is overwrites whatever lies below. In handlers, and before the first of them;
//! async-signal-safe.

use libc::{stack_t, ucontext_t};
use std::hint::black_box;
use std::mem::{MaybeUninit, size_of};

/// What our handlers need for themselves, in bytes: that of the tick's signal with all that it calls
/// has 2 KB, that of a fault less.
const HANDLERS: usize = 5 * 1024;

/// What a handler needs that finds too little room, and does nothing else.
const LOOK: usize = 1024;

/// What room there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// For the handler's work, for a fault in it, and for that fault's handler.
    Enough,
    /// Too little, because other handlers have taken some.
    NotNow,
    /// Too little, however empty the signal stack is.
    Never,
}

/// The room that the calling handler has.
///
/// # Safety
/// `context` is what the kernel passed to this handler.
#[inline(never)]
pub unsafe fn room(context: *const ucontext_t) -> Room {
    let here = 0u8;
    let here = black_box(&raw const here) as usize;
    // SAFETY: by this function's contract.
    let (stack, frame) = unsafe { (&(*context).uc_stack, size_of_frame(context)) };
    room_on(stack, here, frame)
}

/// Whether the calling thread's signal stack, if it has one, holds a handler that looks at the room. On one
/// that doesn't, the system ends the process instead of calling the handler, or the handler overruns it.
pub fn is_enough_here() -> bool {
    let mut stack = MaybeUninit::<stack_t>::zeroed();
    // SAFETY: only fills in what there is.
    let stack = unsafe {
        if libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) != 0 {
            return true;
        }
        stack.assume_init()
    };
    stack.ss_flags & libc::SS_DISABLE != 0 || stack.ss_size >= asked_for() + LOOK
}

/// The smallest signal stack that the system has room on, in bytes.
fn asked_for() -> usize {
    /// `AT_MINSIGSTKSZ` in Linux's uapi/linux/auxvec.h.
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: reads what the kernel has put beside the program's environment.
    let asked = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    // Older kernels don't say.
    asked.max(libc::MINSIGSTKSZ)
}

/// The room below the address `here`, if that is on the signal stack, where signals take `frame` bytes
/// each. A thread's own stack grows until the system says that it is full.
fn room_on(stack: &stack_t, here: usize, frame: usize) -> Room {
    let base = stack.ss_sp as usize;
    let is_on_it = here >= base && here - base < stack.ss_size;
    let needed = frame + HANDLERS;
    match () {
        () if stack.ss_flags & libc::SS_DISABLE != 0 || !is_on_it => Room::Enough,
        () if here - base >= needed => Room::Enough,
        () if stack.ss_size >= frame + needed => Room::NotNow,
        () => Room::Never,
    }
}

/// How much the kernel puts on the stack for a further signal, in bytes: as much as for this one.
///
/// # Safety
/// `context` is what the kernel passed to a handler.
#[cfg(target_arch = "x86_64")]
unsafe fn size_of_frame(context: *const ucontext_t) -> usize {
    // `struct _fpx_sw_bytes` in Linux's asm/sigcontext.h: in the last 48 of the 512 bytes that all CPUs
    // save. It says how large all of the saved state is, vectors included.
    const SAVED_BY_ALL: usize = 512;
    const SW_BYTES: usize = 464;
    const MAGIC: u32 = 0x4650_5853;
    // Registers, the signal's facts, and what is lost by alignment.
    let rest = size_of::<ucontext_t>() + size_of::<libc::siginfo_t>() + 128;
    // SAFETY: by this function's contract. The kernel puts the state's address behind the 23 registers; the crate
    // libc has a name for it with glibc only. If it isn't null, the state has at least 512 bytes.
    let (magic, size) = unsafe {
        let registers = &raw const (*context).uc_mcontext.gregs;
        let state = registers.add(1).cast::<*const u8>().read();
        if state.is_null() {
            return rest;
        }
        let words = state.add(SW_BYTES).cast::<u32>();
        (words.read_unaligned(), words.add(1).read_unaligned())
    };
    rest + if magic == MAGIC {
        size as usize
    } else {
        SAVED_BY_ALL
    }
}

/// How much the kernel puts on the stack for a further signal, in bytes: as much as it says that a signal
/// stack has to have, which counts the largest vectors of the CPU.
///
/// # Safety
/// None is needed here.
#[cfg(target_arch = "aarch64")]
unsafe fn size_of_frame(_: *const ucontext_t) -> usize {
    asked_for().max(size_of::<ucontext_t>() + size_of::<libc::siginfo_t>() + 128)
}

/// Gives the calling thread a signal stack of so many bytes: Ruby's threads have 16 kB, and those of
/// Rust's library what the system asks for at least, which is too little for a fault in a handler.
#[cfg(test)]
pub(crate) fn use_signal_stack(size: usize) {
    let room = Box::leak(vec![0u8; size].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: room.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: size,
    };
    // SAFETY: the memory is there for ever, and nobody else uses it.
    let failed = unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
    assert_eq!(failed, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(base: usize, size: usize, flags: i32) -> stack_t {
        stack_t {
            ss_sp: base as *mut libc::c_void,
            ss_flags: flags,
            ss_size: size,
        }
    }

    #[test]
    fn the_room_is_what_lies_below() {
        let used = stack(0x10000, 0x4000, 0);
        let frame = 0x3000 - HANDLERS;
        assert_eq!(room_on(&used, 0x13000, frame), Room::Enough);
        assert_eq!(room_on(&used, 0x12fff, frame), Room::Never);
        assert_eq!(room_on(&used, 0x11000, 0x800), Room::NotNow);
        for elsewhere in [0x20000, 0x8000] {
            assert_eq!(room_on(&used, elsewhere, frame), Room::Enough);
        }
        let none = stack(0, 0, libc::SS_DISABLE);
        assert_eq!(room_on(&none, 0x13000, frame), Room::Enough);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_frame_is_as_large_as_the_kernel_says() {
        let mut state = [0u8; 512];
        state[464..468].copy_from_slice(&0x4650_5853u32.to_ne_bytes());
        state[468..472].copy_from_slice(&2_696u32.to_ne_bytes());
        // SAFETY: all zeros are a context; its pointer leads to the state above.
        let (with, without) = unsafe {
            let mut context: ucontext_t = std::mem::zeroed();
            let without = size_of_frame(&raw const context);
            let registers = &raw mut context.uc_mcontext.gregs;
            registers.add(1).cast::<*mut u8>().write(state.as_mut_ptr());
            (size_of_frame(&raw const context), without)
        };
        assert_eq!(with - without, 2_696);
    }
}

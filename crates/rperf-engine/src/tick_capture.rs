//! Tick capture: at a tick the native thread that holds the GVL is interrupted
//! ([`signal`]), and its handler takes the stack on the spot. It goes into a log
//! ([`TickLog`]), and becomes a sample at the next event that comes anyway. Nothing
//! interrupts the program's Ruby code: compiled code stays compiled.

pub mod at_work;
mod capture;
mod code_map;
mod compiled_line;
#[cfg_attr(not(target_arch = "x86_64"), path = "tick_capture/no_guards.rs")]
mod guards;
mod hidden_frames;
#[cfg(target_os = "linux")]
mod kernel_sleep;
mod log;
mod stack_buffer;

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "tick_capture/no_signal.rs"
)]
pub mod signal;

use std::ffi::c_void;

pub use capture::TickCapture;
use code_map::CodeMap;
pub use log::{TickLog, TickTimes};

/// Registers of the interrupted thread, as far as the one who takes its stack may know
/// their meaning.
#[derive(Debug, Clone, Copy)]
pub struct Registers {
    /// The next instruction.
    pub instruction: usize,
    /// The top of the native stack.
    pub stack: usize,
    /// r12 and r13 of x86-64; elsewhere 0.
    pub r12: usize,
    /// See `r12`.
    pub r13: usize,
    /// The thread was waiting for another one in the kernel.
    pub was_waiting: bool,
}

/// Takes the stack of the calling thread, which holds the GVL with this seq, for a tick
/// at that time in ns. Async-signal-safe; called by the signal handler.
pub type TakeStack = fn(u32, u64, Registers);

/// Takes the stack of the calling thread, of another Ractor than the main one, for the owner of
/// its place: on this native thread, for a tick at that time in ns. Async-signal-safe; called by
/// the signal handler.
pub type TakeOtherStack = fn(*mut c_void, u32, u64, Registers);

/// What the signal handler calls on threads of other Ractors.
#[derive(Debug, Clone, Copy)]
pub struct OtherCalls {
    /// Takes the stack.
    pub take_stack: TakeOtherStack,
    /// Taking it has faulted.
    pub give_up: unsafe fn(*mut c_void),
}

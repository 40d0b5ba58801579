//! Tick capture: at a tick the native thread that holds the GVL is interrupted
//! ([`signal`]), and its handler takes the stack on the spot. It goes into a log
//! ([`TickLog`]), and becomes a sample at the next event that comes anyway. Nothing
//! interrupts the program's Ruby code: compiled code stays compiled.

pub mod at_work;
mod capture;
mod code_map;
mod compiled_line;
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

use rperf_vm::{FrameLayout, FrameWord, LateFrames, NativeId, VmFrames};
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
    /// Where the function returns to, if the processor has that in a register: it may have called
    /// another one since. Elsewhere 0.
    pub link: usize,
    /// What compiled code has the execution context in: r12 on x86-64, x20 on arm64.
    pub context: usize,
    /// What compiled code has its control frame in: r13 on x86-64, x19 on arm64.
    pub frame: usize,
    /// The thread was waiting for another one in the kernel.
    pub was_waiting: bool,
}

/// How compiled code stores the program counter before it calls, and as it goes back to the
/// interpreter.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Both in the control frame.
    InFrame,
    /// The program counter of a call in a record, whose address the code puts into the native stack;
    /// the other one in the control frame.
    InRecord {
        /// Where a record has it.
        late: LateFrames,
        /// The instruction sequence of the frame in question.
        iseq: FrameWord,
    },
}

impl Form {
    /// The form that the code of this frame has from the compiler that is on.
    fn of(vm: &impl VmFrames, layout: &FrameLayout, iseq: FrameWord) -> Form {
        match layout.late {
            Some(late) if vm.fills_frames_late() => Form::InRecord { late, iseq },
            _ => Form::InFrame,
        }
    }
}

/// Has stacks taken on threads that the signal handler has interrupted. All of it runs in the
/// handler, and is async-signal-safe.
pub trait TakeStacks: Send + Sync {
    /// Takes the stack of the calling thread, which holds the main Ractor's GVL as `seq`, for the
    /// tick at `tick_ns`. If reading the stack faults, this doesn't return.
    ///
    /// # Safety
    /// It does hold that.
    unsafe fn take(&self, seq: u32, tick_ns: u64, registers: &Registers);

    /// Takes the stack of the calling thread, which is of another Ractor and runs in the place of
    /// `owner` on native thread `native_id`, for the tick at `tick_ns`. If reading the stack
    /// faults, this doesn't return.
    ///
    /// # Safety
    /// `owner` is that of a place that the handler has read, and the handler is gone before it is.
    unsafe fn take_other(
        &self,
        owner: *mut c_void,
        native_id: NativeId,
        tick_ns: u64,
        registers: &Registers,
    );

    /// Taking the stack for `owner` has faulted.
    ///
    /// # Safety
    /// `owner` is the one that
    /// [`OtherHolders::take_interrupted`](crate::timer::other_holders::OtherHolders::take_interrupted)
    /// hands out, during that call.
    unsafe fn give_up(&self, owner: *mut c_void);
}

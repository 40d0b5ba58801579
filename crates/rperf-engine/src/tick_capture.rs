//! Tick capture: at a tick the native thread that holds the GVL is interrupted
//! ([`signal`]), and its handler takes the stack on the spot. It goes into a log
//! ([`TickLog`]), and becomes a sample at the next event that comes anyway. Nothing
//! interrupts the program's Ruby code: compiled code stays compiled.

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

pub use log::{LoggedTick, TickLog, TickTimes};

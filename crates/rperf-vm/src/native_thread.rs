//! What threads of our own, which wake at moments of their own, ask the system for: short time slices,
//! and no signals. On such a thread, and on the one that starts it.

#[cfg(target_os = "linux")]
use super::system_calls::{Calls, make_short_slices, may};
use std::mem::MaybeUninit;
use std::ptr;

/// Asks the scheduler for a short time slice, so that a tick is served at once
/// though the program keeps the CPU busy (measured on one CPU: without, of 205
/// ticks due in 300 us slices between sleeps 1 was on time; with, all). Linux
/// 6.12 and later heed `sched_runtime` for SCHED_OTHER; older kernels preempt
/// at wake-up anyway. Needs no privilege; if it fails, or a filter would end the
/// process for it, ticks may come late.
pub fn ask_for_short_slices() {
    #[cfg(target_os = "linux")]
    if may(Calls::ShortSlices) {
        make_short_slices();
    }
}

/// Blocks all signals for the calling thread. Returns those that were blocked before.
pub fn block_all_signals() -> libc::sigset_t {
    let (mut all, mut previous) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
    // SAFETY: sigfillset initialises `all`; pthread_sigmask fills `previous` in,
    // and if it failed a zeroed set is valid too.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), previous.as_mut_ptr());
        previous.assume_init()
    }
}

/// Blocks these signals, and no others.
pub fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: `mask` is what `block_all_signals` was given by the system.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, ptr::null_mut()) };
}

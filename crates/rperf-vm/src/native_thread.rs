//! What threads of our own, which wake at moments of their own, ask the system for: short time slices,
//! and no signals. On such a thread, and on the one that starts it.

#[cfg(target_os = "linux")]
use super::system_calls::{Calls, may};
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

/// Makes the calls, and nothing else.
#[cfg(target_os = "linux")]
pub(crate) fn make_short_slices() {
    #[repr(C)]
    struct SchedAttr {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    // The thread keeps the nice value it has inherited.
    // SAFETY: getpriority has no memory arguments; 0 means this thread.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: 100_000,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attr` is a valid sched_attr of the size it states.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    // SAFETY: sets this thread's timer slack (ns); no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) };
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

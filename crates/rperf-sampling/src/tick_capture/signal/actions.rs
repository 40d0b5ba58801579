//! What the system does with a signal: asked for, set and put back. Called as the handlers come and
//! go, and by the timer. Async-signal-safe.

use libc::{c_int, c_void, siginfo_t};
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The signal of a tick.
pub const INTERRUPT: c_int = libc::SIGURG;

/// A handler.
pub type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

pub fn action_of(signal: c_int) -> io::Result<libc::sigaction> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only writes the present one.
    if unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: filled in by the call.
    Ok(unsafe { action.assume_init() })
}

pub fn is_ours(signal: c_int, handler: Handler) -> bool {
    action_of(signal).is_ok_and(|action| is(&action, handler))
}

pub fn is(action: &libc::sigaction, handler: Handler) -> bool {
    action.sa_sigaction == handler as usize
}

/// Installs `handler` with these signals blocked, and these flags besides ours. It runs
/// on the thread's signal stack: the stack of a fiber may be short, or nearly full.
pub fn set_action(
    signal: c_int,
    handler: Handler,
    mask: libc::sigset_t,
    flags: c_int,
) -> io::Result<()> {
    let mut action = default_action();
    action.sa_sigaction = handler as usize;
    action.sa_mask = mask;
    action.sa_flags = flags | libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    put_action(signal, &action)
}

pub fn default_action() -> libc::sigaction {
    // SAFETY: all zeros are SIG_DFL without a mask or flags.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

pub fn put_action(signal: c_int, action: &libc::sigaction) -> io::Result<()> {
    // SAFETY: `action` is valid, and its handler async-signal-safe or the system's.
    if unsafe { libc::sigaction(signal, action, ptr::null_mut()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

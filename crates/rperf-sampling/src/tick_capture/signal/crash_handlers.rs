//! The VM's handlers of crashes by other signals than SIGSEGV. They report the crash on a small signal
//! stack, on which there is no room for the frame of a tick's signal: the kernel would end the program
//! before our handler could look. So they block that signal as long as ticks may come. Called as our
//! handlers come and go; [`release`] is async-signal-safe.

use super::actions::{INTERRUPT, action_of, put_action};
use libc::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

const CRASHES: [c_int; 4] = [libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT];

/// The signals, a bit each, whose handlers block ticks because of us.
static BLOCKED: AtomicU32 = AtomicU32::new(0);

/// Has the VM's handlers block ticks: those that are in the library of `fault`, its handler of SIGSEGV.
/// Handlers of the program's are its own affair: they may leave by a jump, and the signal would stay
/// blocked.
pub fn hold(fault: &libc::sigaction) {
    let Some(library) = library_of(fault) else {
        return;
    };
    for signal in CRASHES {
        let Ok(mut action) = action_of(signal) else {
            continue;
        };
        if library_of(&action) != Some(library) || blocks_ticks(&action) {
            continue;
        }
        // SAFETY: a valid set, and the number of a signal.
        unsafe { libc::sigaddset(&raw mut action.sa_mask, INTERRUPT) };
        if put_action(signal, &action).is_ok() {
            BLOCKED.fetch_or(1 << signal, SeqCst);
        }
    }
}

/// Has these handlers block ticks no more.
pub fn release() {
    let blocked = BLOCKED.swap(0, SeqCst);
    for signal in CRASHES.into_iter().filter(|it| blocked & (1 << it) != 0) {
        let Ok(mut action) = action_of(signal) else {
            continue;
        };
        // Another handler may have come since.
        if is_handler(&action) && blocks_ticks(&action) {
            // SAFETY: as above.
            unsafe { libc::sigdelset(&raw mut action.sa_mask, INTERRUPT) };
            let _ = put_action(signal, &action);
        }
    }
}

fn is_handler(action: &libc::sigaction) -> bool {
    !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
}

fn blocks_ticks(action: &libc::sigaction) -> bool {
    // SAFETY: reads a valid set.
    unsafe { libc::sigismember(&raw const action.sa_mask, INTERRUPT) == 1 }
}

/// Where the library of a handler begins.
fn library_of(action: &libc::sigaction) -> Option<usize> {
    if !is_handler(action) {
        return None;
    }
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    let handler = action.sa_sigaction as *const c_void;
    // SAFETY: only looks the address up, and writes what it finds.
    let is_found = unsafe { libc::dladdr(handler, found.as_mut_ptr()) } != 0;
    // SAFETY: all zeros are a value, too.
    is_found.then(|| unsafe { found.assume_init() }.dli_fbase as usize)
}

//! Writing where files have a limit of size (RLIMIT_FSIZE): a write beyond it is an error, and no signal
//! that ends the program. Used by all that writes files; any thread.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// What `write` returns. SIGXFSZ, which the system sends to a thread that writes beyond the limit, doesn't
/// reach the program meanwhile.
pub fn without_size_signal<T>(write: impl FnOnce() -> T) -> T {
    let mut signal = SigSet::empty();
    signal.add(Signal::SIGXFSZ);
    let mut before = SigSet::empty();
    let is_blocked = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&signal), Some(&mut before));
    if is_blocked.is_err() || before.contains(Signal::SIGXFSZ) || is_pending() {
        // It is the program's own affair, which nothing is taken from.
        let written = write();
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
        return written;
    }
    let written = write();
    if is_pending() {
        take(&signal);
    }
    let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    written
}

/// Takes the signal that is pending. Another thread may have taken it meanwhile: nothing is waited for.
#[cfg(target_os = "linux")]
fn take(signal: &SigSet) {
    let no_time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: reads the set and the time, and writes nothing.
    unsafe { libc::sigtimedwait(signal.as_ref(), std::ptr::null_mut(), &raw const no_time) };
}

/// Takes the signal that is pending.
#[cfg(not(target_os = "linux"))]
fn take(signal: &SigSet) {
    let _ = signal.wait();
}

/// Whether the signal waits for this thread, or for the process.
fn is_pending() -> bool {
    let mut pending = SigSet::empty();
    // SAFETY: writes to `pending`, whose type has the system's form.
    let failed = unsafe { libc::sigpending(std::ptr::from_mut(&mut pending).cast()) } != 0;
    !failed && pending.contains(Signal::SIGXFSZ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SigHandler, signal};

    #[test]
    fn a_write_beyond_the_limit_sends_no_signal() {
        // Were it to arrive, the tests would end.
        let default = SigHandler::SigDfl;
        // SAFETY: the default action runs no code of ours.
        unsafe { signal(Signal::SIGXFSZ, default) }.expect("an action");
        let number = without_size_signal(|| {
            // SAFETY: sends a signal to the calling thread, as the system does.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ) };
            7
        });
        assert_eq!(number, 7);
        assert!(!is_pending(), "it was taken");
    }
}

//! Writing without the signals that end a program for what it writes: where files have a limit of size
//! (RLIMIT_FSIZE), and to a pipe that nobody reads any more, a write is an error and nothing else. Used by
//! all that writes files; any thread.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

/// Linux sends them to the thread that writes.
const SIGNALS: [Signal; 2] = [Signal::SIGXFSZ, Signal::SIGPIPE];

/// What `write` returns. No signal that the system sends for it reaches the program.
pub fn without_write_signals<T>(write: impl FnOnce() -> T) -> T {
    let all = SigSet::from_iter(SIGNALS);
    let mut before = SigSet::empty();
    let is_blocked = pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&all), Some(&mut before)).is_ok();
    // What is blocked or waits already is the program's own affair: nothing is taken from it.
    let waiting = pending();
    let ours = SIGNALS
        .into_iter()
        .filter(|&it| is_blocked && !before.contains(it) && !waiting.contains(it));
    let ours: SigSet = ours.collect();
    let _guard = Blocked {
        ours,
        before: is_blocked.then_some(before),
    };
    write()
}

/// Signals that are blocked. When this is dropped, also by a panic, those that have come are taken, and the mask is as
/// before.
struct Blocked {
    /// The signals that are nobody's but ours.
    ours: SigSet,
    before: Option<SigSet>,
}

impl Drop for Blocked {
    fn drop(&mut self) {
        let sent = pending();
        for signal in self.ours.iter().filter(|&it| sent.contains(it)) {
            take(&SigSet::from(signal));
        }
        if let Some(before) = &self.before {
            let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(before), None);
        }
    }
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

/// The signals that wait for this thread, or for the process.
fn pending() -> SigSet {
    let mut pending = SigSet::empty();
    // SAFETY: writes to `pending`, whose type has the system's form.
    let failed = unsafe { libc::sigpending(std::ptr::from_mut(&mut pending).cast()) } != 0;
    match failed {
        true => SigSet::empty(),
        false => pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
    use std::cell::Cell;

    thread_local! {
        /// Whether this thread was interrupted.
        static HANDLED: Cell<bool> = const { Cell::new(false) };
    }

    extern "C" fn handle(_: libc::c_int) {
        HANDLED.set(true);
    }

    #[test]
    fn a_write_sends_no_signal() {
        let action = SigAction::new(
            SigHandler::Handler(handle),
            SaFlags::empty(),
            SigSet::empty(),
        );
        for (sent, number) in SIGNALS.into_iter().zip([libc::SIGXFSZ, libc::SIGPIPE]) {
            // SAFETY: the handler sets a flag of its thread, and nothing else.
            unsafe { sigaction(sent, &action) }.expect("an action");
            let send = || {
                // SAFETY: sends a signal to the calling thread, as the system does.
                unsafe { libc::pthread_kill(libc::pthread_self(), number) };
                7
            };
            assert_eq!(without_write_signals(send), 7);
            assert!(!HANDLED.get() && !pending().contains(sent), "it was taken");
            send();
            assert!(HANDLED.replace(false), "it comes as ever");
        }
    }

    #[test]
    fn a_signal_that_the_program_blocks_waits_on() {
        let blocked = SigSet::from(Signal::SIGXFSZ);
        blocked.thread_block().expect("blocked");
        without_write_signals(|| {
            // SAFETY: as above.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGXFSZ) };
        });
        assert!(pending().contains(Signal::SIGXFSZ));
        take(&blocked);
        blocked.thread_unblock().expect("as before");
    }
}

//! What signals do while something must not be ended in the middle, or is to end in its own way. Used
//! on the main thread; the handlers run on any thread.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

/// What people and supervisors send to end a program.
const ENDS: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
];
/// What a terminal sends to all programs in the foreground when a key is pressed.
const KEYS: [Signal; 2] = [Signal::SIGINT, Signal::SIGQUIT];

/// The signal that came while signals were held; 0 for none.
static HELD: AtomicI32 = AtomicI32::new(0);

/// What signals do for as long as this lives; then they do what they did before.
#[derive(Debug)]
pub struct Actions {
    previous: Vec<(Signal, SigAction)>,
}

impl Actions {
    /// Gives `signals` this handler, which may do no more than a handler of signals may. A
    /// signal that is ignored, as by nohup, stays ignored.
    pub fn set(signals: &[Signal], handler: SigHandler) -> Self {
        Self::set_with(signals, handler, SaFlags::SA_RESTART)
    }

    /// The actions of [`Self::set`], for the first signal of each kind: the next one does what it
    /// does to any program.
    pub fn set_once(signals: &[Signal], handler: SigHandler) -> Self {
        Self::set_with(
            signals,
            handler,
            SaFlags::SA_RESTART | SaFlags::SA_RESETHAND,
        )
    }

    fn set_with(signals: &[Signal], handler: SigHandler, flags: SaFlags) -> Self {
        let action = SigAction::new(handler, flags, SigSet::empty());
        let set = |signal| {
            // SAFETY: the handlers in this crate only touch atomics.
            let previous = unsafe { sigaction(signal, &action) }.ok()?;
            if matches!(previous.handler(), SigHandler::SigIgn) {
                restore(signal, &previous);
                return None;
            }
            Some((signal, previous))
        };
        Self {
            previous: signals.iter().copied().filter_map(set).collect(),
        }
    }

    /// The terminal's keys are another program's business, such as a pager's: nothing happens
    /// here. Programs that are started meanwhile get the default actions, as they would not
    /// if the signals were ignored.
    pub fn leave_keys_to_others() -> Self {
        extern "C" fn do_nothing(_: libc::c_int) {}
        Self::set(&KEYS, SigHandler::Handler(do_nothing))
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        for (signal, action) in &self.previous {
            restore(*signal, action);
        }
    }
}

fn restore(signal: Signal, action: &SigAction) {
    // SAFETY: puts back what was there before.
    let _ = unsafe { sigaction(signal, action) };
}

/// Holds up signals that would end this process until `act` has returned.
pub fn hold_during<T>(act: impl FnOnce() -> T) -> T {
    extern "C" fn note(signal: libc::c_int) {
        HELD.store(signal, SeqCst);
    }
    let actions = Actions::set(&ENDS, SigHandler::Handler(note));
    let result = act();
    drop(actions);
    if let Ok(signal) = Signal::try_from(HELD.swap(0, SeqCst)) {
        // It is a signal that we had a handler for.
        let _ = raise(signal);
    }
    result
}

/// Whether a signal came that is held up.
pub fn is_one_held() -> bool {
    HELD.load(SeqCst) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    static CAME: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn count(_: libc::c_int) {
        CAME.fetch_add(1, SeqCst);
    }

    #[test]
    fn a_signal_is_held_until_the_work_is_done_and_then_comes() {
        let _actions = Actions::set(&[Signal::SIGTERM], SigHandler::Handler(count));
        let held = hold_during(|| {
            raise(Signal::SIGTERM).expect("sent");
            CAME.load(SeqCst)
        });
        assert_eq!((held, CAME.load(SeqCst)), (0, 1));
        raise(Signal::SIGTERM).expect("sent");
        assert_eq!(CAME.load(SeqCst), 2, "the handler is back");
        hold_during(|| ());
        assert_eq!(CAME.load(SeqCst), 2, "nothing came");
    }
}

//! The interruption of the thread that holds the GVL, as the timer and that thread see it. The
//! timer's handler sends the signal; the thread takes it, or calls it off as it gives the GVL up.
//! Only atomics.
//!
//! A signal that arrives in a system call which waits without the GVL would end that call early:
//! `poll` and `select` are never restarted, and `IO#sysread` then raises EAGAIN. So no signal may
//! be on its way to a thread that has given the GVL up.

use crate::sync::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, yield_now};
use rperf_vm::NativeId;

/// The timer means to send a signal; the thread may call it off.
const MEANT: u64 = 1 << 32;
/// The timer is about to send it.
const SENDING: u64 = 2 << 32;
/// The signal is sent, and not answered yet.
const SENT: u64 = 3 << 32;

/// How often a thread lets others run until the signal is sent. One system call takes the timer
/// about a microsecond; this is for a machine on which it has to wait for a CPU.
const PATIENCE: u32 = 1_000;

/// The last interruption.
#[derive(Debug, Default)]
pub struct Interruption {
    /// How far it is, and in the lower half whose it is: the kernel's id of a native thread. 0 if
    /// there is none, or it has been answered.
    state: AtomicU64,
    since_ns: AtomicU64,
}

impl Interruption {
    /// The timer means to interrupt native thread `tid`. It must look once more whether the
    /// thread has the GVL, and call [`Interruption::commit`] right before it sends the signal.
    pub(crate) fn begin(&self, tid: NativeId, now: u64) {
        self.since_ns.store(now, Relaxed);
        self.state.store(MEANT | u64::from(tid.0), SeqCst);
    }

    /// Whether to send the signal now: the thread hasn't called it off.
    pub(crate) fn commit(&self, tid: NativeId) -> bool {
        self.advance(tid, MEANT, SENDING)
    }

    /// The signal is on its way, unless it has been answered already.
    pub(crate) fn sent(&self, tid: NativeId) {
        self.advance(tid, SENDING, SENT);
    }

    /// No signal was sent. Returns whether the timer has decided so, rather than the thread.
    pub(crate) fn withdraw(&self, tid: NativeId) -> bool {
        let tid = u64::from(tid.0);
        [MEANT, SENDING].iter().any(|stage| {
            let from = stage | tid;
            self.state.compare_exchange(from, 0, SeqCst, SeqCst).is_ok()
        })
    }

    /// The signal has arrived at native thread `tid`, the calling one.
    pub(crate) fn answered(&self, tid: NativeId) {
        if self.is_of(tid) {
            self.state.store(0, SeqCst);
        }
    }

    /// Whether the last interruption is that of native thread `tid`, and not answered yet.
    #[inline]
    pub(crate) fn is_of(&self, tid: NativeId) -> bool {
        let state = self.state.load(SeqCst);
        state != 0 && state as u32 == tid.0
    }

    /// Since when there is one.
    pub(crate) fn since_ns(&self) -> u64 {
        self.since_ns.load(Relaxed)
    }

    /// The calling thread, on native thread `tid`, is no longer noted as the one that has the
    /// GVL. When this returns, no signal is on its way to it, unless it blocks the signal.
    #[inline]
    pub(crate) fn leave(&self, tid: NativeId) {
        if self.is_of(tid) {
            self.settle(tid);
        }
    }

    #[cold]
    fn settle(&self, tid: NativeId) {
        for _ in 0..PATIENCE {
            if self.advance(tid, MEANT, 0) || !self.is_of(tid) {
                return;
            }
            let is_sent = self.state.load(SeqCst) == SENT | u64::from(tid.0);
            // A signal that was sent before a system call comes as that returns, at the latest.
            yield_now();
            if is_sent {
                return;
            }
        }
    }

    fn advance(&self, tid: NativeId, from: u64, to: u64) -> bool {
        let (from, to) = (from | u64::from(tid.0), to | u64::from(tid.0));
        // Without a stage there is no thread either.
        let to = if to < MEANT { 0 } else { to };
        self.state
            .compare_exchange(from, to, SeqCst, SeqCst)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn an_interruption_is_meant_sent_and_answered() {
        let interruption = Interruption::default();
        assert!(!interruption.is_of(NativeId(7)) && !interruption.is_of(NativeId(0)));
        interruption.begin(NativeId(7), 100);
        assert!(interruption.is_of(NativeId(7)) && !interruption.is_of(NativeId(8)));
        assert_eq!(interruption.since_ns(), 100);
        assert!(interruption.commit(NativeId(7)));
        interruption.sent(NativeId(7));
        interruption.answered(NativeId(8));
        assert!(interruption.is_of(NativeId(7)), "another thread's answer");
        interruption.answered(NativeId(7));
        assert!(!interruption.is_of(NativeId(7)));
        interruption.begin(NativeId(7), 200);
        assert!(interruption.commit(NativeId(7)));
        interruption.answered(NativeId(7));
        interruption.sent(NativeId(7));
        assert!(!interruption.is_of(NativeId(7)), "the answer came at once");
    }

    #[test]
    fn a_thread_that_leaves_calls_off_what_is_not_sent() {
        let interruption = Interruption::default();
        interruption.begin(NativeId(7), 100);
        interruption.leave(NativeId(8));
        interruption.leave(NativeId(7));
        assert!(!interruption.commit(NativeId(7)), "called off");
        assert!(!interruption.withdraw(NativeId(7)), "not by the timer");
        interruption.begin(NativeId(7), 200);
        assert!(interruption.withdraw(NativeId(7)));
        interruption.begin(NativeId(7), 300);
        assert!(
            interruption.commit(NativeId(7)) && interruption.withdraw(NativeId(7)),
            "failed"
        );
        assert!(!interruption.is_of(NativeId(7)));
    }

    #[test]
    fn a_thread_that_leaves_waits_for_a_signal_that_is_being_sent() {
        let interruption = Interruption::default();
        interruption.begin(NativeId(7), 100);
        assert!(interruption.commit(NativeId(7)));
        thread::scope(|scope| {
            let leaving = scope.spawn(|| interruption.leave(NativeId(7)));
            interruption.answered(NativeId(7));
            leaving.join().expect("it doesn't panic");
        });
        assert!(!interruption.is_of(NativeId(7)));
        interruption.begin(NativeId(7), 200);
        assert!(interruption.commit(NativeId(7)));
        interruption.sent(NativeId(7));
        interruption.leave(NativeId(7));
        assert!(interruption.is_of(NativeId(7)), "it blocks the signal");
    }
}

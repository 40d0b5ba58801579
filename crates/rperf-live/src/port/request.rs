//! The question that only the VM can answer: the stacks of all threads. The port's thread asks; a
//! Ruby thread finds that out at its next safepoint, and a helper thread answers. Only atomics and
//! a channel are shared, so nobody waits for anybody.

use super::stacks::{Answer, ThreadStack};
use super::state::Port;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// The number of the question that is open; 0 if there is none.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// A helper is at work, or about to be.
static HELPED: AtomicBool = AtomicBool::new(false);

/// Whether the caller is to make a helper: there is none.
pub fn claim_helper() -> bool {
    !HELPED.swap(true, SeqCst)
}

/// The helper ends, or couldn't be made.
pub fn release_helper() {
    HELPED.store(false, SeqCst);
}

/// Opens a question. On the port's thread.
pub fn ask() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, SeqCst) + 1;
    OPEN.store(number, SeqCst);
    number
}

/// Nobody waits for an answer any more.
pub fn withdraw() {
    OPEN.store(0, SeqCst);
}

/// In a forked child, which has neither the port's thread nor the helper.
pub fn forget_in_child() {
    withdraw();
    release_helper();
}

/// The question that is open, if there is one. Any thread.
pub fn open() -> Option<u64> {
    Some(OPEN.load(SeqCst)).filter(|&number| number > 0)
}

/// Answers the question of this number. Waits for nobody. On a Ruby thread.
pub fn answer(number: u64, threads: Result<Vec<ThreadStack>, &'static str>) {
    let was_open = OPEN.compare_exchange(number, 0, SeqCst, SeqCst);
    if let (Ok(_), Some(port)) = (was_open, Port::current()) {
        port.hand_over(Answer { number, threads });
    }
}

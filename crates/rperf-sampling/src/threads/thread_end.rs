//! A thread's end, noted by the thread itself without the GVL, and read by whoever merges
//! ended threads, with it.

use crate::sync::{AtomicBool, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// Whether a thread has ended, and its CPU clock then.
#[derive(Debug, Default)]
pub struct ThreadEnd {
    cpu_ns: AtomicU64,
    has_come: AtomicBool,
}

impl ThreadEnd {
    /// The thread ends. It touches nothing that others may free afterwards.
    pub fn note(&self, cpu_ns: u64) {
        self.cpu_ns.store(cpu_ns, Relaxed);
        self.has_come.store(true, Release);
    }

    /// The thread's CPU clock at its end; `None` before it.
    pub fn cpu_ns(&self) -> Option<u64> {
        self.has_come
            .load(Acquire)
            .then(|| self.cpu_ns.load(Relaxed))
    }

    /// Whether the thread has ended: whoever sees that may free what it used.
    pub fn has_come(&self) -> bool {
        self.has_come.load(Acquire)
    }
}

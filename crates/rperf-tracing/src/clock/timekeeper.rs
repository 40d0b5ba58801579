//! The indirect clock of tracing: a thread of its own notes the time every ms, and hooks read
//! the last note, a word in memory. It runs as long as a session that has this clock; the thread
//! that starts the session starts it.

use rperf_vm::Dither;
use rperf_vm::clock::{monotonic_ns, sleep};
use rperf_vm::native_thread::{ask_for_short_slices, block_all_signals, restore_signals};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// The mean time between two notes, that of a sampling profiler's ticks. To wake up takes up to
/// 15 us of CPU time in a virtual machine: 1.5 % of a CPU, while with notes every 250 us calls took as
/// much CPU time as with the processor's counter. A program can be in step with even gaps.
const INTERVAL_NS: u64 = 1_000_000;

/// The last note, on CLOCK_MONOTONIC. That of a timekeeper that has ended is as good as any.
static NOTED: AtomicU64 = AtomicU64::new(0);

/// The time as it was noted last.
#[inline]
pub(crate) fn noted_ns() -> u64 {
    NOTED.load(Relaxed)
}

/// Notes the time until it is dropped.
#[derive(Debug)]
pub struct Timekeeper {
    is_over: Arc<AtomicBool>,
}

impl Timekeeper {
    /// From here on the time is noted.
    pub fn start() -> io::Result<Self> {
        note();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let body = move || {
            ask_for_short_slices();
            let mut dither = Dither::new(monotonic_ns());
            while !seen.load(Relaxed) {
                sleep(Duration::from_nanos(dither.gap(INTERVAL_NS)));
                note();
            }
        };
        // Signals for the process are the program's: this thread takes none.
        let mask = block_all_signals();
        let spawned = thread::Builder::new()
            .name("rperf clock".into())
            .stack_size(64 << 10)
            .spawn(body);
        restore_signals(&mask);
        spawned.map(|_| Self { is_over })
    }
}

impl Drop for Timekeeper {
    /// The thread ends by itself, after one note more.
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

/// Another timekeeper may have noted a later time.
fn note() {
    NOTED.fetch_max(monotonic_ns(), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_noted_again_and_again_and_never_early() {
        let timekeeper = Timekeeper::start().expect("threads can be started");
        for _ in 0..20 {
            let before = noted_ns();
            while noted_ns() == before {
                thread::yield_now();
            }
            let noted = noted_ns();
            assert!(before < noted && noted <= monotonic_ns());
        }
        drop(timekeeper);
    }
}

//! The stacks that the signal handler has taken of a thread of another Ractor, until they become samples.

use super::super::config::RecorderConfig;
use crate::counters::SessionCounters;
use crate::tick_capture::{TickLog, TickTimes};
use rperf_vm::{FiberWord, Stack, clock};

/// Words of the log: 64 kB. The worker empties it some times a second.
const LOG_WORDS: usize = 1 << 13;

/// The log, and what the handler has counted since its stacks became samples last. The handler
/// allocates nothing here.
#[derive(Debug)]
pub(super) struct TickStacks {
    pub(super) log: TickLog,
    /// Ticks whose stack couldn't be read, or found no room in the log.
    unreadable: u64,
    spent_ns: u64,
}

impl TickStacks {
    /// None yet; they have at most so many frames.
    pub(super) fn new(config: &RecorderConfig, depth: usize) -> Self {
        let merges = config.limits.aggregate;
        Self {
            log: TickLog::with_room(LOG_WORDS, depth + 1, config.with_lines, merges),
            unreadable: 0,
            spent_ns: 0,
        }
    }

    /// A stack couldn't be read. Async-signal-safe.
    pub(super) fn note_unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// Adds the `stack` of a tick, of which so many frames from the root are `shared` with the last one; it
    /// has taken from `times.now_ns` up to now. Async-signal-safe.
    pub(super) fn push(&mut self, stack: Stack<'_>, shared: usize, times: TickTimes) {
        let began_ns = times.now_ns;
        if !self.log.push(stack, shared, times, FiberWord::default()) {
            self.unreadable += 1;
        }
        self.spent_ns += clock::monotonic_ns().saturating_sub(began_ns);
    }

    /// The stacks of so many `ticks` have become samples in `spent_ns`: adds what was counted.
    pub(super) fn count_into(&mut self, counters: &mut SessionCounters, ticks: u64, spent_ns: u64) {
        counters.sampling_count += ticks;
        counters.sampling_time_ns += self.spent_ns + spent_ns;
        counters.capture.tick_stacks += ticks;
        counters.capture.unreadable_stacks += self.unreadable;
        (self.unreadable, self.spent_ns) = (0, 0);
    }
}

//! What a session counts on the sampling side, under the GVL; and how stacks are taken.

use crate::Values;

/// Where the stack of the running thread is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capture {
    /// At the tick, by a signal handler.
    Tick,
    /// At the next safepoint, by the sampling callback.
    Safepoint,
}

/// How stacks were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounters {
    /// At the tick, by the signal handler.
    pub tick_stacks: u64,
    /// At a safepoint, by the sampling callback.
    pub safepoint_stacks: u64,
    /// Calls of the sampling callback, whether it took a stack or not.
    pub safepoint_calls: u64,
    /// Ticks at which the stack couldn't be read.
    pub unreadable_stacks: u64,
    /// Frames that backtraces leave out, learned at a safepoint.
    pub hidden_frames: u64,
    /// Waits whose stack was known.
    pub known_waits: u64,
}

impl CaptureCounters {
    /// Adds those of `other`.
    pub fn add(&mut self, other: CaptureCounters) {
        self.tick_stacks += other.tick_stacks;
        self.safepoint_stacks += other.safepoint_stacks;
        self.safepoint_calls += other.safepoint_calls;
        self.unreadable_stacks += other.unreadable_stacks;
        self.hidden_frames += other.hidden_frames;
        self.known_waits += other.known_waits;
    }
}

/// Stacks that were taken, or known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackCounts {
    /// Stacks taken at ticks, or at the safepoint after them.
    pub running: u64,
    /// Stacks taken, or known, as threads came back to the GVL.
    pub off_gvl: u64,
}

impl StackCounts {
    /// The counts for so many stacks of threads that run.
    pub fn running(stacks: u64) -> Self {
        Self {
            running: stacks,
            off_gvl: 0,
        }
    }

    /// The counts for so many stacks of a thread that came back to the GVL.
    pub fn off_gvl(stacks: u64) -> Self {
        Self {
            running: 0,
            off_gvl: stacks,
        }
    }
}

/// What was counted on the sampling side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionCounters {
    /// Stacks that were taken at ticks, or at the safepoint after them.
    pub sampling_count: u64,
    /// Time spent on them, and in hooks that recorded a sample, in ns.
    pub sampling_time_ns: u64,
    /// Threads seen alive.
    pub threads: u32,
    /// Samples folded into `[truncated]`, or without the root of their stack.
    pub truncated: u64,
    /// How stacks were taken.
    pub capture: CaptureCounters,
    /// Samples lost because no backtrace could be taken, and their time.
    pub uncaptured: Values,
    /// Waits for the GVL of which it isn't known who had it, in ns, where that is measured.
    pub unknown_holder_ns: i64,
    /// Waits for the GVL in which nobody had it, in ns, where that is measured.
    pub hand_over_ns: u64,
}

impl SessionCounters {
    /// Adds those of `other`.
    pub fn add(&mut self, other: &SessionCounters) {
        self.sampling_count += other.sampling_count;
        self.sampling_time_ns += other.sampling_time_ns;
        self.threads += other.threads;
        self.truncated += other.truncated;
        self.capture.add(other.capture);
        self.uncaptured.add(other.uncaptured);
        self.unknown_holder_ns += other.unknown_holder_ns;
        self.hand_over_ns += other.hand_over_ns;
    }
}

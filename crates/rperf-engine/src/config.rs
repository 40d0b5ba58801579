//! What the bridge starts a session with: settings, and the VM's part of sampling.

use crate::Mode;
use crate::sources::TimerKind;
use crate::tick_capture::{TakeOtherStack, TakeStack};

/// What a session is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// What the weights measure.
    pub mode: Mode,
    /// Samples per second, 1 to 10,000.
    pub frequency: u32,
    /// How much of the program's CPU time sampling may take before intervals lengthen, in
    /// percent; at 100 they never do.
    pub max_overhead: u32,
    /// The timer.
    pub timer: TimerKind,
    /// Sum samples, or keep each.
    pub aggregate: bool,
}

impl SessionConfig {
    /// Mean gap between samples in ns.
    pub fn interval(&self) -> u64 {
        1_000_000_000 / u64::from(self.frequency.max(1))
    }
}

/// What the engine calls in the VM; all async-signal-safe.
#[derive(Debug, Clone, Copy)]
pub struct VmCalls {
    /// Asks for the sampling callback.
    pub trigger: fn(),
    /// Takes the stack of the calling thread, which holds the GVL under this seq, for
    /// the tick at this time. It may fault: then it doesn't return.
    pub take_stack: TakeStack,
    /// The same for a thread of another Ractor.
    pub take_other_stack: TakeOtherStack,
}

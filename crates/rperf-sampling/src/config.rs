//! What the bridge starts a session with.

use crate::counters::Capture;
use crate::timer::sources::TimerKind;
use crate::values::Measured;
use rperf_model::Mode;
use rperf_vm::Unknown;
use std::io;

/// Nodes that a profile has at most, if nobody says anything.
pub const DEFAULT_MAX_NODES: u32 = 1_000_000;

/// What a session is started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// What the weights measure.
    pub mode: Mode,
    /// Waits for the GVL are charged to the thread that has it; in wall mode.
    pub blames: bool,
    /// Requests are judged: with blame, it is charged to the stacks that made each of them wait, too.
    pub judges: bool,
    /// Samples per second, 1 to 10,000.
    pub frequency: u32,
    /// How much of the program's CPU time sampling may take before intervals lengthen, in
    /// percent; at 100 they never do.
    pub max_overhead: u32,
    /// Nodes of the call tree that a profile has at most: the lightest stacks are folded.
    pub max_nodes: u32,
    /// The timer.
    pub timer: TimerKind,
    /// Sum samples, or keep each.
    pub aggregate: bool,
}

impl SessionConfig {
    /// What is measured.
    pub fn measured(&self) -> Measured {
        Measured {
            mode: self.mode,
            blames: self.blames && self.mode == Mode::Wall,
            pairs: self.blames && self.judges && self.mode == Mode::Wall,
        }
    }

    /// Mean gap between samples in ns.
    pub fn interval(&self) -> u64 {
        1_000_000_000 / u64::from(self.frequency.max(1))
    }
}

/// What the bridge asks for beside that.
#[derive(Debug, Clone, Copy)]
pub struct StartOptions {
    /// The session's own settings.
    pub config: SessionConfig,
    /// The timer was not asked for in particular: if signal timers are used up, one that sleeps
    /// will do.
    pub any_timer: bool,
    /// Samples have lines.
    pub lines: bool,
    /// Where stacks are taken; `None`: at the tick if that can be.
    pub capture: Option<Capture>,
    /// Native threads may run several Ruby threads (RUBY_MN_THREADS=1).
    pub shares_native_threads: bool,
    /// Called on the worker with the number of other Ractors' threads that have ended since its last
    /// call.
    pub on_ended_threads: Option<fn(u32)>,
}

/// What samples lack because the VM isn't of the form that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Missing {
    /// Stacks at ticks: all are taken at safepoints, as frames aren't objects of the kinds that
    /// [`VmFrames::are_frames`](rperf_vm::VmFrames::are_frames) knows.
    pub tick_stacks: bool,
    /// Lines of compiled code on top of stacks, for this reason.
    pub compiled_lines: Option<Unknown>,
}

/// Why no session was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The worker or the timer can't be had.
    #[error("can't start profiling: {0}")]
    Worker(io::Error),
    /// Stacks can't be taken at the tick, though they must.
    #[error("can't start profiling with capture: :tick: {0}")]
    TickCapture(io::Error),
}

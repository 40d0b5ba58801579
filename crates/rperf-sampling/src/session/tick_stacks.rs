//! Whether a session's stacks are taken at ticks, and what they lack. With the GVL.

use crate::config::Missing;
use crate::counters::Capture;
use crate::tick_capture::signal::TickSignal;
use rperf_vm::Unknown;

/// Where stacks of running threads come from. While `signal` is there, they are taken at ticks; how they
/// were taken is known when that is over, too.
#[derive(Debug)]
pub(super) struct TickStacks {
    capture: Capture,
    missing: Missing,
    signal: Option<TickSignal>,
}

impl TickStacks {
    /// None is taken at ticks, and none lacks anything.
    pub(super) fn none() -> Self {
        Self {
            capture: Capture::Safepoint,
            missing: Missing::default(),
            signal: None,
        }
    }

    /// None can be taken at ticks.
    pub(super) fn lack_all(&mut self) {
        self.missing.tick_stacks = true;
    }

    /// Why those that are taken at ticks lack lines of compiled code, if they do.
    pub(super) fn lack_compiled_lines(&mut self, reason: Option<Unknown>) {
        self.missing.compiled_lines = reason;
    }

    /// From now on they are taken at ticks, with this signal.
    pub(super) fn begin(&mut self, signal: TickSignal) {
        self.signal = Some(signal);
        self.capture = Capture::Tick;
    }

    /// No stack is taken at ticks any more: the signal is given back.
    pub(super) fn end(&mut self) {
        self.signal = None;
    }

    /// Whether they are taken at ticks.
    pub(super) fn are_taken(&self) -> bool {
        self.signal.is_some()
    }

    /// How stacks of running threads were taken.
    pub(super) fn capture(&self) -> Capture {
        self.capture
    }

    /// What samples lack. Compiled lines are lacking only where stacks were taken at ticks.
    pub(super) fn missing(&self) -> Missing {
        let is_at_tick = self.capture == Capture::Tick;
        Missing {
            compiled_lines: self.missing.compiled_lines.filter(|_| is_at_tick),
            ..self.missing
        }
    }
}

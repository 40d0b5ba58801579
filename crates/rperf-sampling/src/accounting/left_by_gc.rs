//! What collections on a thread leave for its next samples.

use super::by_state::ByState;
use rperf_model::{GcCause, State};

/// What collections leave for a later sample, or a remainder.
#[derive(Debug, Default)]
pub(super) struct LeftByGc {
    /// CPU time in collections that no sample has taken yet (wall mode).
    cpu_ns: ByState<u64>,
    /// Why the last one ran, where that is known.
    pub(super) cause: Option<GcCause>,
}

impl LeftByGc {
    /// Adds CPU time in `state` that waits for a sample.
    pub(super) fn add_cpu(&mut self, state: State, ns: u64) {
        self.cpu_ns[state as usize] += ns;
    }

    /// Takes the CPU time in `state`.
    pub(super) fn take_cpu(&mut self, state: State) -> u64 {
        std::mem::take(&mut self.cpu_ns[state as usize])
    }
}

//! When a traced session is paused, and for how long it has been. Under the GVL.

use crate::clock::ClockReading;

/// The pauses of a session.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    /// When the present one began.
    pub(crate) since: Option<u64>,
    /// Ticks of those that are over.
    pub(crate) ticks: u64,
}

impl Pauses {
    /// Ticks of all from `start` to `end`.
    pub(crate) fn ticks_until(&self, start: &ClockReading, end: u64) -> u64 {
        let present = self.since.map(|since| since.max(start.ticks));
        self.ticks + present.map_or(0, |since| end.saturating_sub(since))
    }

    /// What comes is counted anew.
    pub(crate) fn clear(&mut self) {
        self.ticks = 0;
    }
}

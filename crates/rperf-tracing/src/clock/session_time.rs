//! The time of a traced session: from when on it counts, how far it has come, and what of it is left
//! out. At events, under the GVL.

use crate::clock::pauses::Pauses;
use crate::clock::{ClockReading, TraceClock};

/// The time of a session that runs, on one clock. Its last event never goes back, though the
/// counters of different processors may differ by a little.
#[derive(Debug)]
pub(crate) struct SessionTime {
    /// When the last event came.
    pub(crate) last: u64,
    pauses: Pauses,
    start: ClockReading,
    pub(crate) clock: TraceClock,
}

/// The time that a snapshot is of.
#[derive(Debug)]
pub(crate) struct CountedTime {
    pub(crate) clock: TraceClock,
    pub(crate) start: ClockReading,
    pub(crate) end: ClockReading,
    /// Ticks in which nothing counted.
    paused_ticks: u64,
}

impl SessionTime {
    pub(crate) fn new(clock: TraceClock, start: ClockReading) -> Self {
        Self {
            last: start.ticks,
            pauses: Pauses::default(),
            start,
            clock,
        }
    }

    /// Ticks since the last event.
    #[inline]
    pub(crate) fn gap(&self, now: u64) -> u64 {
        now.saturating_sub(self.last)
    }

    /// An event has come.
    #[inline]
    pub(crate) fn come_to(&mut self, now: u64) {
        self.last = self.last.max(now);
    }

    /// Since when nothing counts, if there is a pause.
    #[inline]
    pub(crate) fn paused_since(&self) -> Option<u64> {
        self.pauses.since
    }

    /// Whether nothing counts.
    #[inline]
    pub(crate) fn is_paused(&self) -> bool {
        self.pauses.since.is_some()
    }

    /// Up to when it counts: `now`, or the begin of the pause.
    pub(crate) fn counts_until(&self, now: u64) -> u64 {
        self.pauses.since.unwrap_or(now)
    }

    /// Nothing counts from the last event on.
    pub(crate) fn pause(&mut self) {
        self.pauses.since = Some(self.last);
    }

    /// The pause ends, if there is one. Returns whether there was.
    pub(crate) fn resume(&mut self, now: u64) -> bool {
        self.pauses.ticks = self.pauses.ticks_until(&self.start, now);
        self.pauses.since.take().is_some()
    }

    /// All is counted anew from `start` on. A pause goes on.
    pub(crate) fn restart(&mut self, start: ClockReading) {
        self.start = start;
        self.pauses.clear();
    }

    /// The time up to `end`.
    pub(crate) fn until(&self, end: ClockReading) -> CountedTime {
        CountedTime {
            clock: self.clock,
            start: self.start,
            end,
            paused_ticks: self.pauses.ticks_until(&self.start, end.ticks),
        }
    }
}

impl CountedTime {
    /// How many ns a tick has had.
    pub(crate) fn ns_per_tick(&self) -> f64 {
        self.end.ns_per_tick_since(&self.start)
    }

    /// All of it, in ns.
    pub(crate) fn duration_ns(&self) -> u64 {
        let (start, end) = (self.start.monotonic_ns, self.end.monotonic_ns);
        end.saturating_sub(start)
    }

    /// What nothing counted in, in ns.
    pub(crate) fn paused_ns(&self) -> f64 {
        self.paused_ticks as f64 * self.ns_per_tick()
    }
}

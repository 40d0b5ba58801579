//! Events that came while somebody else was at work on a thread's recorder: hooks don't wait.
//! Written by the thread, without locks, and read by whoever has the recorder next.

use std::array;
use std::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Events that find room: others work on a recorder for a moment only.
const ROOM: usize = 64;

/// The thread got its GVL, or gave it up, at this time in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedEvent {
    /// The thread got the GVL. The second time is the one since which it was ready, or 0.
    Resumed(u64, u64),
    /// The thread gave the GVL up.
    Suspended(u64),
}

/// The events, in the order of time.
#[derive(Debug)]
pub struct MissedEvents {
    events: [Event; ROOM],
    written: AtomicUsize,
    read: AtomicUsize,
}

/// Times in ns.
#[derive(Debug, Default)]
struct Event {
    /// 0 if the thread gave the GVL up then.
    resumed: AtomicU64,
    /// When it was ready, or gave the GVL up.
    before: AtomicU64,
}

impl Default for MissedEvents {
    fn default() -> Self {
        Self {
            events: array::from_fn(|_| Event::default()),
            written: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
        }
    }
}

impl MissedEvents {
    /// Whether there are any.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.written.load(Relaxed) == self.read.load(Acquire)
    }

    /// Adds one. Returns whether there was room for it. On the thread, in hooks.
    pub fn push(&self, event: MissedEvent) -> bool {
        let written = self.written.load(Relaxed);
        if written.wrapping_sub(self.read.load(Acquire)) >= ROOM {
            return false;
        }
        let (resumed, before) = match event {
            MissedEvent::Resumed(now, ready) => (now, ready),
            MissedEvent::Suspended(now) => (0, now),
        };
        let place = &self.events[written % ROOM];
        place.resumed.store(resumed, Relaxed);
        place.before.store(before, Relaxed);
        self.written.store(written.wrapping_add(1), Release);
        true
    }

    /// Takes the oldest one. For whoever has the recorder.
    pub fn take(&self) -> Option<MissedEvent> {
        let read = self.read.load(Relaxed);
        if self.written.load(Acquire) == read {
            return None;
        }
        let place = &self.events[read % ROOM];
        let before = place.before.load(Relaxed);
        let event = match place.resumed.load(Relaxed) {
            0 => MissedEvent::Suspended(before),
            now => MissedEvent::Resumed(now, before),
        };
        self.read.store(read.wrapping_add(1), Release);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_in_order_as_long_as_there_is_room() {
        let events = MissedEvents::default();
        assert!(events.are_none() && events.take().is_none());
        let resumed = |at| MissedEvent::Resumed(at, at - 1);
        for round in 0..3 {
            for at in 1..=ROOM as u64 {
                let event = if at % 2 == 0 {
                    resumed(at)
                } else {
                    MissedEvent::Suspended(at)
                };
                assert!(events.push(event), "round {round}");
            }
            assert!(!events.push(resumed(1000)) && !events.are_none());
            let taken: Vec<_> = std::iter::from_fn(|| events.take()).collect();
            assert_eq!(taken.len(), ROOM);
            assert_eq!(taken[..2], [MissedEvent::Suspended(1), resumed(2)]);
        }
    }
}

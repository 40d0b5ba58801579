//! How long the pieces of a collection take, and how much of them is marking. Fed by the
//! bridge's GC hook with the VM's events, on the thread that collects.

use crate::accounting::GcWork;
use std::mem::take;

/// An event of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcEvent {
    /// A piece of work begins.
    Enter,
    /// Marking begins.
    MarkBegin,
    /// Marking ends.
    MarkEnd,
    /// The piece of work ends.
    Exit,
}

/// Where the collection at hand stands.
#[derive(Debug, Default)]
pub struct GcProgress {
    /// When the present piece of work began; 0 outside of one.
    enter_ns: u64,
    /// When marking began or went on within it; 0 if it isn't marking.
    marking_since_ns: u64,
    /// Marking time within it that is over.
    marked_ns: u64,
    /// The last tick before it.
    tick_before_ns: u64,
}

impl GcProgress {
    /// Takes an event; returns the piece of work that it ends, if it does. `is_marking`: the
    /// collection is in its marking phase, which may take several pieces.
    pub fn advance(
        &mut self,
        event: GcEvent,
        now: u64,
        last_tick: u64,
        is_marking: bool,
    ) -> Option<GcWork> {
        match event {
            GcEvent::Enter => {
                *self = GcProgress {
                    enter_ns: now,
                    marking_since_ns: if is_marking { now } else { 0 },
                    marked_ns: 0,
                    tick_before_ns: last_tick,
                }
            }
            GcEvent::MarkBegin => self.marking_since_ns = now,
            GcEvent::MarkEnd => self.stop_marking(now),
            GcEvent::Exit => {
                self.stop_marking(now);
                let enter_ns = take(&mut self.enter_ns);
                return (enter_ns != 0).then_some(GcWork {
                    enter_ns,
                    exit_ns: now,
                    marking_ns: self.marked_ns,
                    tick_before_ns: self.tick_before_ns,
                });
            }
        }
        None
    }

    fn stop_marking(&mut self, now: u64) {
        let since = take(&mut self.marking_since_ns);
        if since != 0 {
            self.marked_ns += now.saturating_sub(since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GcEvent::{Enter, Exit, MarkBegin, MarkEnd};
    use super::*;

    #[test]
    fn marking_is_told_from_the_rest_of_a_piece() {
        let mut progress = GcProgress::default();
        assert_eq!(progress.advance(Enter, 100, 90, false), None);
        assert_eq!(progress.advance(MarkBegin, 110, 90, true), None);
        assert_eq!(progress.advance(MarkEnd, 150, 90, false), None);
        let work = progress.advance(Exit, 170, 160, false);
        let expected = GcWork {
            enter_ns: 100,
            exit_ns: 170,
            marking_ns: 40,
            tick_before_ns: 90,
        };
        assert_eq!(work, Some(expected));
        assert_eq!(
            progress.advance(Exit, 180, 160, false),
            None,
            "it has ended"
        );
    }

    #[test]
    fn marking_goes_on_in_the_next_piece() {
        let mut progress = GcProgress::default();
        progress.advance(Enter, 100, 0, false);
        progress.advance(MarkBegin, 110, 0, true);
        let first = progress.advance(Exit, 130, 0, true);
        assert_eq!(first.map(|work| work.marking_ns), Some(20));
        progress.advance(Enter, 200, 0, true);
        progress.advance(MarkEnd, 205, 0, false);
        let second = progress.advance(Exit, 220, 0, false);
        assert_eq!(
            second.map(|work| (work.marking_ns, work.enter_ns)),
            Some((5, 200))
        );
    }

    #[test]
    fn an_end_without_a_beginning_is_no_work() {
        assert_eq!(GcProgress::default().advance(Exit, 5, 0, true), None);
    }
}

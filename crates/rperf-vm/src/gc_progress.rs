//! How long the pieces of a collection take, and how much of them is marking. Fed by the
//! bridge's GC hook with the VM's events, on the thread that collects.

use crate::clock;
use rperf_model::GcCause;
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

/// Where the collection stands at an event, as the VM tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcPhase {
    /// Whether the collection is in its marking phase, which may take several pieces.
    pub is_marking: bool,
    /// Why it runs, where that is known: asked for at the end of a piece alone.
    pub cause: Option<GcCause>,
}

/// When an event came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcMoment {
    /// On the monotonic clock.
    pub monotonic_ns: u64,
    /// On the thread's CPU clock.
    pub cpu_ns: u64,
}

impl GcMoment {
    /// Now, on the calling thread.
    #[inline]
    pub fn now() -> Self {
        Self {
            monotonic_ns: clock::monotonic_ns(),
            cpu_ns: clock::thread_cpu_ns(),
        }
    }
}

/// A piece of garbage collection work on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcWork {
    /// When it began and ended.
    pub enter_ns: u64,
    /// See `enter_ns`.
    pub exit_ns: u64,
    /// The CPU time that it took.
    pub cpu_ns: u64,
    /// How much of it was marking; the rest is sweeping.
    pub marking: GcTime,
    /// The last tick before it began.
    pub tick_before_ns: u64,
    /// The collection began in it.
    pub is_first: bool,
    /// Why the collection runs, where that is known.
    pub cause: Option<GcCause>,
}

/// How long some of the work took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcTime {
    /// On the monotonic clock.
    pub wall_ns: u64,
    /// On the thread's CPU clock.
    pub cpu_ns: u64,
}

/// Where the collection at hand stands.
#[derive(Debug, Default)]
pub struct GcProgress {
    /// When the present piece of work began; 0 outside of one.
    enter_ns: u64,
    /// The thread's CPU clock then.
    enter_cpu_ns: u64,
    /// When marking began or went on within it, if it is marking.
    marking_since: Option<GcMoment>,
    /// Marking time within it that is over.
    marking: GcTime,
    /// The last tick before it.
    tick_before_ns: u64,
    /// The collection began within it.
    is_first: bool,
}

impl GcProgress {
    /// Takes an event of `now`; returns the piece of work that it ends, if it does.
    #[inline]
    pub fn advance(
        &mut self,
        event: GcEvent,
        now: GcMoment,
        last_tick: u64,
        phase: GcPhase,
    ) -> Option<GcWork> {
        match event {
            GcEvent::Enter => {
                *self = GcProgress {
                    enter_ns: now.monotonic_ns,
                    enter_cpu_ns: now.cpu_ns,
                    marking_since: phase.is_marking.then_some(now),
                    marking: GcTime::default(),
                    tick_before_ns: last_tick,
                    is_first: false,
                }
            }
            GcEvent::MarkBegin => {
                self.marking_since = Some(now);
                self.is_first = true;
            }
            GcEvent::MarkEnd => self.stop_marking(now),
            GcEvent::Exit => {
                self.stop_marking(now);
                let enter_ns = take(&mut self.enter_ns);
                return (enter_ns != 0).then(|| GcWork {
                    enter_ns,
                    exit_ns: now.monotonic_ns,
                    cpu_ns: now.cpu_ns.saturating_sub(self.enter_cpu_ns),
                    marking: self.marking,
                    tick_before_ns: self.tick_before_ns,
                    is_first: self.is_first,
                    cause: phase.cause,
                });
            }
        }
        None
    }

    #[inline]
    fn stop_marking(&mut self, now: GcMoment) {
        if let Some(since) = self.marking_since.take() {
            self.marking.wall_ns += now.monotonic_ns.saturating_sub(since.monotonic_ns);
            self.marking.cpu_ns += now.cpu_ns.saturating_sub(since.cpu_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GcEvent::{Enter, Exit, MarkBegin, MarkEnd};
    use super::*;

    const MARKING: GcPhase = GcPhase {
        is_marking: true,
        cause: None,
    };
    const SWEEPING: GcPhase = GcPhase {
        is_marking: false,
        cause: Some(GcCause::MinorMalloc),
    };

    /// The thread has the CPU half of the time.
    fn at(monotonic_ns: u64) -> GcMoment {
        GcMoment {
            monotonic_ns,
            cpu_ns: monotonic_ns / 2,
        }
    }

    #[test]
    fn marking_is_told_from_the_rest_of_a_piece() {
        let mut progress = GcProgress::default();
        assert_eq!(progress.advance(Enter, at(100), 90, SWEEPING), None);
        assert_eq!(progress.advance(MarkBegin, at(110), 90, MARKING), None);
        assert_eq!(progress.advance(MarkEnd, at(150), 90, SWEEPING), None);
        let work = progress.advance(Exit, at(170), 160, SWEEPING);
        let expected = GcWork {
            enter_ns: 100,
            exit_ns: 170,
            cpu_ns: 35,
            marking: GcTime {
                wall_ns: 40,
                cpu_ns: 20,
            },
            tick_before_ns: 90,
            is_first: true,
            cause: Some(GcCause::MinorMalloc),
        };
        assert_eq!(work, Some(expected));
        assert_eq!(
            progress.advance(Exit, at(180), 160, SWEEPING),
            None,
            "it has ended"
        );
    }

    #[test]
    fn marking_goes_on_in_the_next_piece() {
        let mut progress = GcProgress::default();
        progress.advance(Enter, at(100), 0, SWEEPING);
        progress.advance(MarkBegin, at(110), 0, MARKING);
        let first = progress.advance(Exit, at(130), 0, MARKING);
        assert_eq!(first.map(|work| work.marking.wall_ns), Some(20));
        progress.advance(Enter, at(200), 0, MARKING);
        progress.advance(MarkEnd, at(204), 0, SWEEPING);
        let second = progress.advance(Exit, at(220), 0, SWEEPING);
        let marking = GcTime {
            wall_ns: 4,
            cpu_ns: 2,
        };
        assert_eq!(
            second.map(|work| (work.marking, work.enter_ns, work.is_first)),
            Some((marking, 200, false))
        );
    }

    #[test]
    fn an_end_without_a_beginning_is_no_work() {
        assert_eq!(GcProgress::default().advance(Exit, at(5), 0, MARKING), None);
    }
}

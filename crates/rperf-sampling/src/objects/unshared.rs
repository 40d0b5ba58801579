//! Time of collections that hasn't been shared among the sites of objects yet. Hooks on collections add to it, and
//! allocate nothing; it is taken with the GVL of the main Ractor. Where the VM tells of the collections of other
//! Ractors, one of these may sweep, and add to it, meanwhile: no time is lost then, but a piece may go to the
//! collection before or after its own.

use rperf_model::{GcCause, Mode};
use rperf_vm::GcWork;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Since this was taken last. Times are in ns, by the clock of the session's mode.
#[derive(Debug, Default)]
pub struct UnsharedGc {
    is_shared: AtomicBool,
    before_ns: AtomicU64,
    since_ns: AtomicU64,
    has_begun: AtomicBool,
    marking_ns: AtomicU64,
    asked_ns: AtomicU64,
    marked_at_ns: AtomicU64,
}

/// What was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GcTimes {
    /// Minor marking and sweeping of the collection that had begun when this was taken last.
    pub before_ns: u64,
    /// Minor marking and sweeping of the collections that have begun since.
    pub since_ns: u64,
    /// Whether some have.
    pub has_begun: bool,
    /// Major marking.
    pub marking_ns: u64,
    /// Collections that the program asked for.
    pub asked_ns: u64,
    /// When major marking ended or paused last, on the monotonic clock.
    pub marked_at_ns: u64,
}

impl UnsharedGc {
    /// The session shares the time of collections. Before this, none is added.
    pub fn begin(&self) {
        self.is_shared.store(true, Relaxed);
    }

    /// Adds a piece of work, in a session of this mode. A cause that isn't known is as that of a minor collection.
    #[inline]
    pub fn add(&self, work: &GcWork, mode: Mode) {
        if !self.is_shared.load(Relaxed) {
            return;
        }
        let (all, marking) = match mode {
            Mode::Wall => (
                work.exit_ns.saturating_sub(work.enter_ns),
                work.marking.wall_ns,
            ),
            Mode::Cpu => (work.cpu_ns, work.marking.cpu_ns),
        };
        if work.is_first {
            self.has_begun.store(true, Relaxed);
        }
        if work.cause.is_some_and(GcCause::is_asked_for) {
            return add(&self.asked_ns, all);
        }
        let marking = match work.cause.is_some_and(GcCause::is_major) {
            true => marking.min(all),
            false => 0,
        };
        if marking > 0 {
            add(&self.marking_ns, marking);
            self.marked_at_ns.fetch_max(work.exit_ns, Relaxed);
        }
        let rest = match self.has_begun.load(Relaxed) {
            true => &self.since_ns,
            false => &self.before_ns,
        };
        add(rest, all - marking);
    }

    /// Whether a collection has begun: what is sampled from here on is of another one.
    #[inline]
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// Major marking.
    #[inline]
    pub fn marking_ns(&self) -> u64 {
        self.marking_ns.load(Relaxed)
    }

    /// Takes all of it.
    pub fn take(&self) -> GcTimes {
        let take = |sum: &AtomicU64| sum.swap(0, Relaxed);
        GcTimes {
            before_ns: take(&self.before_ns),
            since_ns: take(&self.since_ns),
            has_begun: self.has_begun.swap(false, Relaxed),
            marking_ns: take(&self.marking_ns),
            asked_ns: take(&self.asked_ns),
            marked_at_ns: take(&self.marked_at_ns),
        }
    }
}

fn add(sum: &AtomicU64, more: u64) {
    sum.fetch_add(more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_vm::GcTime;

    fn work(cause: GcCause, is_first: bool, exit_ns: u64) -> GcWork {
        GcWork {
            enter_ns: exit_ns - 100,
            exit_ns,
            cpu_ns: 50,
            marking: GcTime {
                wall_ns: 70,
                cpu_ns: 60,
            },
            tick_before_ns: 0,
            is_first,
            cause: Some(cause),
        }
    }

    #[test]
    fn pieces_are_told_apart_by_their_collection_and_by_what_is_to_blame() {
        let unshared = UnsharedGc::default();
        unshared.add(&work(GcCause::MajorOldgen, true, 900), Mode::Wall);
        assert_eq!(unshared.take(), GcTimes::default());
        unshared.begin();
        unshared.add(&work(GcCause::MinorMalloc, false, 1_000), Mode::Wall);
        assert!(!unshared.has_begun());
        unshared.add(&work(GcCause::MajorOldgen, true, 2_000), Mode::Wall);
        unshared.add(&work(GcCause::MinorNewobj, true, 3_000), Mode::Wall);
        unshared.add(&work(GcCause::MajorStart, false, 4_000), Mode::Wall);
        assert!(unshared.has_begun());
        assert_eq!(unshared.marking_ns(), 70);
        let taken = GcTimes {
            before_ns: 100,
            since_ns: 30 + 100,
            has_begun: true,
            marking_ns: 70,
            asked_ns: 100,
            marked_at_ns: 2_000,
        };
        assert_eq!(unshared.take(), taken);
        assert_eq!(unshared.take(), GcTimes::default());
    }

    #[test]
    fn in_cpu_mode_it_is_cpu_time() {
        let unshared = UnsharedGc::default();
        unshared.begin();
        unshared.add(&work(GcCause::MajorNofree, true, 1_000), Mode::Cpu);
        let taken = unshared.take();
        // Marking can't take longer than the piece.
        assert_eq!((taken.marking_ns, taken.since_ns), (50, 0));
    }
}

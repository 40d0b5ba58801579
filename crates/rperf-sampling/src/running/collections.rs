//! What collections took, by cause. It is read with the GVL of the main Ractor. Where the VM tells of the
//! collections of other Ractors, one of these may sweep, and add to it, meanwhile: no time is lost then, but
//! the sums of a piece may be told apart from each other. In hooks: it allocates nothing.

use rperf_model::{CollectionSums, Collections, GcCause, Histogram};
use rperf_vm::GcWork;
use std::array;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The sums of a session: 2 KB for each cause.
#[derive(Debug)]
pub struct CollectionCounts {
    causes: Box<[CauseCounts; GcCause::ALL.len()]>,
}

/// The sums of a cause.
#[derive(Debug)]
struct CauseCounts {
    count: AtomicU64,
    wall_ns: AtomicU64,
    marking_ns: AtomicU64,
    cpu_ns: AtomicU64,
    longest_ns: AtomicU64,
    pauses: [AtomicU64; Histogram::BUCKETS],
}

impl Default for CollectionCounts {
    fn default() -> Self {
        let causes = array::from_fn(|_| CauseCounts {
            count: AtomicU64::new(0),
            wall_ns: AtomicU64::new(0),
            marking_ns: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
            pauses: array::from_fn(|_| AtomicU64::new(0)),
        });
        Self {
            causes: Box::new(causes),
        }
    }
}

impl CollectionCounts {
    /// Adds a piece of work; nothing if its cause can't be known in this VM.
    #[inline]
    pub fn add(&self, work: &GcWork) {
        let Some(of) = work.cause.and_then(|it| self.causes.get(it as usize)) else {
            return;
        };
        let wall_ns = work.exit_ns.saturating_sub(work.enter_ns);
        add(&of.count, u64::from(work.is_first));
        add(&of.wall_ns, wall_ns);
        add(&of.marking_ns, work.marking.wall_ns.min(wall_ns));
        add(&of.cpu_ns, work.cpu_ns);
        if let Some(bucket) = of.pauses.get(Histogram::bucket_of(wall_ns)) {
            add(bucket, 1);
        }
        of.longest_ns.fetch_max(wall_ns, Relaxed);
    }

    /// The collections so far, which are let go of if `clear`.
    pub fn told(&self, clear: bool) -> Collections {
        let take = |sum: &AtomicU64| match clear {
            true => sum.swap(0, Relaxed),
            false => sum.load(Relaxed),
        };
        let mut told = Collections::default();
        for (cause, of) in GcCause::ALL.into_iter().zip(&*self.causes) {
            let pauses = of.pauses.iter().map(take).enumerate();
            let pauses: Vec<_> = pauses.filter(|(_, pauses)| *pauses > 0).collect();
            let longest_ns = take(&of.longest_ns);
            let sums = CollectionSums {
                count: take(&of.count),
                wall_ns: take(&of.wall_ns),
                marking_ns: take(&of.marking_ns),
                cpu_ns: take(&of.cpu_ns),
                pauses: Histogram::of_buckets(pauses, longest_ns).unwrap_or_default(),
            };
            told.add(cause, &sums);
        }
        told
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.causes)
    }
}

fn add(sum: &AtomicU64, more: u64) {
    sum.fetch_add(more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_vm::GcTime;

    fn work(cause: Option<GcCause>, is_first: bool, wall_ns: u64) -> GcWork {
        GcWork {
            enter_ns: 100,
            exit_ns: 100 + wall_ns,
            cpu_ns: wall_ns / 2,
            marking: GcTime {
                wall_ns: 10,
                cpu_ns: 5,
            },
            tick_before_ns: 0,
            is_first,
            cause,
        }
    }

    #[test]
    fn pieces_of_a_collection_are_pauses_and_it_counts_once() {
        let counts = CollectionCounts::default();
        counts.add(&work(Some(GcCause::MajorOldgen), true, 40));
        counts.add(&work(Some(GcCause::MajorOldgen), false, 20));
        counts.add(&work(Some(GcCause::Other), true, 4));
        counts.add(&work(None, true, 1_000));
        let told = counts.told(false);
        assert_eq!(counts.told(true), told);
        assert!(counts.told(false).is_empty(), "they are let go of");
        let found: Vec<_> = told.iter().collect();
        assert_eq!(found.len(), 2);
        let (cause, sums) = found[0];
        assert_eq!((cause, sums.count), (GcCause::MajorOldgen, 1));
        assert_eq!((sums.wall_ns, sums.marking_ns, sums.cpu_ns), (60, 20, 30));
        assert_eq!((sums.pauses.count(), sums.pauses.max()), (2, 40));
        // Marking can't be longer than the piece.
        assert_eq!((found[1].1.marking_ns, found[1].1.sweeping_ns()), (4, 0));
        assert!(counts.memory() > 20_000);
    }
}

//! What collections took, by their cause: exact sums, beside the samples. Made by the engine, kept in
//! files, read by reports. Any thread, no I/O.

pub(crate) mod gc_cause;

use crate::{GcCause, Histogram};
use std::collections::BTreeMap;

/// The collections of a session; those of several are added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collections {
    by_cause: BTreeMap<GcCause, CollectionSums>,
}

/// Collections of one cause. Times are in ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionSums {
    /// How many have begun.
    pub count: u64,
    /// What they took, on the clock.
    pub wall_ns: u64,
    /// How much of it was marking; the rest is sweeping.
    pub marking_ns: u64,
    /// The CPU time that they took.
    pub cpu_ns: u64,
    /// Their pieces: for so long each time the program stood still.
    pub pauses: Histogram,
}

impl CollectionSums {
    /// What sweeping took.
    pub fn sweeping_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.marking_ns)
    }

    /// Adds those of `other`, saturating.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in [
            (&mut self.count, other.count),
            (&mut self.wall_ns, other.wall_ns),
            (&mut self.marking_ns, other.marking_ns),
            (&mut self.cpu_ns, other.cpu_ns),
        ] {
            *ours = ours.saturating_add(theirs);
        }
        self.pauses.merge(&other.pauses);
    }

    fn subtract(&mut self, earlier: &Self) {
        for (ours, theirs) in [
            (&mut self.count, earlier.count),
            (&mut self.wall_ns, earlier.wall_ns),
            (&mut self.marking_ns, earlier.marking_ns),
            (&mut self.cpu_ns, earlier.cpu_ns),
        ] {
            *ours = ours.saturating_sub(theirs);
        }
        self.pauses.subtract(&earlier.pauses);
    }

    fn is_empty(&self) -> bool {
        self.count == 0 && self.wall_ns == 0 && self.pauses.count() == 0
    }
}

impl Collections {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_cause.is_empty()
    }

    /// Each cause that collections had, in the order of the causes, and what these took.
    pub fn iter(&self) -> impl Iterator<Item = (GcCause, &CollectionSums)> {
        self.by_cause.iter().map(|(cause, sums)| (*cause, sums))
    }

    /// Adds some of this cause.
    pub fn add(&mut self, cause: GcCause, sums: &CollectionSums) {
        if !sums.is_empty() {
            self.by_cause.entry(cause).or_default().add(sums);
        }
    }

    /// Adds those of another process or session.
    pub fn merge(&mut self, other: &Self) {
        for (cause, sums) in other.iter() {
            self.add(cause, sums);
        }
    }

    /// Takes those away that an earlier snapshot of the same session has. The longest pause is known
    /// roughly then.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        for (cause, sums) in earlier.iter() {
            if let Some(ours) = self.by_cause.get_mut(&cause) {
                ours.subtract(sums);
            }
        }
        self.by_cause.retain(|_, sums| !sums.is_empty());
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let each = |sums: &CollectionSums| size_of::<CollectionSums>() + sums.pauses.memory();
        self.by_cause.values().map(each).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(pauses: &[u64]) -> CollectionSums {
        let mut sums = CollectionSums {
            count: 1,
            marking_ns: pauses[0],
            ..CollectionSums::default()
        };
        for &pause in pauses {
            sums.pauses.add(pause);
            sums.wall_ns += pause;
            sums.cpu_ns += pause / 2;
        }
        sums
    }

    #[test]
    fn those_of_one_cause_are_added_and_none_are_nothing() {
        let mut all = Collections::default();
        all.add(GcCause::MajorStart, &CollectionSums::default());
        assert!(all.is_empty());
        all.add(GcCause::MajorStart, &took(&[3, 5]));
        let mut merged = all.clone();
        all.add(GcCause::MinorNewobj, &took(&[7]));
        merged.merge(&all);
        let found: Vec<_> = merged.iter().collect();
        assert_eq!(found.len(), 2);
        let (cause, sums) = found[1];
        assert_eq!(
            (cause, sums.count, sums.wall_ns),
            (GcCause::MajorStart, 2, 16)
        );
        assert_eq!((sums.marking_ns, sums.sweeping_ns()), (6, 10));
        assert_eq!((sums.pauses.count(), sums.pauses.max()), (4, 5));
        assert!(merged.memory() > all.memory() / 2);
    }

    #[test]
    fn what_came_after_a_snapshot_is_left() {
        let mut earlier = Collections::default();
        earlier.add(GcCause::MajorStart, &took(&[1_000_000]));
        earlier.add(GcCause::MinorMalloc, &took(&[4]));
        let mut later = earlier.clone();
        later.add(GcCause::MajorStart, &took(&[10, 20]));
        later.subtract(&earlier);
        let found: Vec<_> = later.iter().collect();
        assert_eq!(found.len(), 1);
        let (cause, sums) = found[0];
        assert_eq!(
            (cause, sums.count, sums.wall_ns),
            (GcCause::MajorStart, 1, 30)
        );
        assert_eq!(sums.pauses.count(), 2);
        assert!(
            (20..=24).contains(&sums.pauses.max()),
            "{}",
            sums.pauses.max()
        );
    }
}

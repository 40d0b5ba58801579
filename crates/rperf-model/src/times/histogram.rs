//! How long the calls of a method took: a histogram with four buckets to an octave, so that a
//! quantile is at most some 12 % off. Filled by traces at returns, under the GVL; read by
//! reports and formats on any thread.

use crate::times::buckets;

/// Buckets to an octave, as a power of two.
const BITS: u32 = 2;
const BUCKETS: usize = buckets::count::<BITS>();

/// The durations of the calls of a method that have ended, in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latencies {
    /// The method's name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// How long the calls took.
    pub durations: Histogram,
}

impl Latencies {
    /// Methods that a profile has them of at most: each takes 2 KB.
    pub const MOST: usize = 1 << 15;
}

/// Durations, of whatever unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            max: 0,
        }
    }
}

impl Histogram {
    /// Adds a call.
    #[inline]
    pub fn add(&mut self, ticks: u64) {
        self.buckets[bucket_of(ticks)] += 1;
        self.count += 1;
        self.max = self.max.max(ticks);
    }

    /// How many calls have ended.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }

    /// The longest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Adds those of another one.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.buckets.iter_mut().zip(other.buckets.iter()) {
            *ours = ours.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.max = self.max.max(other.max);
    }

    /// Takes those of an earlier state of it away. The longest is known roughly then: as the end of the
    /// last bucket that is left.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        for (ours, theirs) in self.buckets.iter_mut().zip(earlier.buckets.iter()) {
            *ours = ours.saturating_sub(*theirs);
        }
        self.count = self.buckets.iter().copied().fold(0, u64::saturating_add);
        let last = self.buckets.iter().rposition(|calls| *calls > 0);
        self.max = last.map_or(0, |it| self.max.min(start_of(it + 1).saturating_sub(1)));
    }

    /// The number of the bucket of a duration.
    pub fn bucket_of(ticks: u64) -> usize {
        bucket_of(ticks)
    }

    /// How many buckets there are.
    pub const BUCKETS: usize = BUCKETS;

    /// The buckets that have any calls, by their numbers.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        let buckets = self.buckets.iter().copied().enumerate();
        buckets.filter(|(_, calls)| *calls > 0)
    }

    /// The histogram of these numbered buckets and `max`; `None` if a number has no bucket.
    pub fn of_buckets(buckets: impl IntoIterator<Item = (usize, u64)>, max: u64) -> Option<Self> {
        let mut all = Self {
            max,
            ..Self::default()
        };
        for (number, calls) in buckets {
            let bucket = all.buckets.get_mut(number)?;
            *bucket = bucket.saturating_add(calls);
            all.count = all.count.saturating_add(calls);
        }
        Some(all)
    }

    /// What `percent` of the calls took at most, or nearly so.
    pub fn quantile(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100);
        let mut seen: u128 = 0;
        for (bucket, calls) in self.buckets.iter().enumerate() {
            seen += u128::from(*calls);
            if *calls > 0 && seen >= wanted {
                let (from, to) = (start_of(bucket), start_of(bucket + 1));
                return (from + (to - from) / 2).min(self.max);
            }
        }
        self.max
    }
}

fn bucket_of(ticks: u64) -> usize {
    buckets::bucket_of::<BITS>(ticks)
}

/// The least duration in a bucket.
fn start_of(bucket: usize) -> u64 {
    buckets::start_of::<BITS>(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_the_bucket_that_begins_at_or_below_it() {
        for ticks in [0, 1, 3, 4, 5, 7, 8, 9, 1_000, 123_456, 1 << 40, u64::MAX] {
            let bucket = bucket_of(ticks);
            assert!(bucket < BUCKETS && start_of(bucket) <= ticks, "{ticks}");
            assert!(ticks < start_of(bucket + 1) || ticks == u64::MAX, "{ticks}");
        }
    }

    #[test]
    fn buckets_make_it_anew_and_sums_are_those_of_both() {
        let mut durations = Histogram::default();
        for ticks in [3, 9, 9, 1_000_000] {
            durations.add(ticks);
        }
        let max = durations.max();
        let again = Histogram::of_buckets(durations.buckets(), max);
        assert_eq!(again.as_ref(), Some(&durations));
        let mut both = durations.clone();
        both.merge(&durations);
        assert_eq!((both.count(), both.max()), (8, 1_000_000));
        assert_eq!(both.quantile(50), durations.quantile(50));
        assert_eq!(Histogram::of_buckets([(BUCKETS, 1)], 1), None);
    }

    #[test]
    fn quantiles_are_within_an_eighth() {
        let mut durations = Histogram::default();
        (1..=10_000).for_each(|ticks| durations.add(ticks));
        for (percent, truth) in [(50, 5_000.0), (99, 9_900.0)] {
            let found = durations.quantile(percent) as f64;
            assert!((found / truth - 1.0).abs() < 0.125, "{percent}: {found}");
        }
        assert_eq!((durations.count(), durations.max()), (10_000, 10_000));
        assert!(durations.quantile(100) <= durations.max() && durations.memory() > 2_000);
        assert_eq!(Histogram::default().quantile(50), 0);
    }
}

//! Quantiles of many values in little memory: a histogram with eight buckets to an octave, so that a
//! quantile is at most 6 % off. It grows with its largest value; two of them add up exactly.

use crate::times::buckets::{bucket_of, count, start_of};
use std::ops::Range;

/// Buckets to an octave, as a power of two.
const BITS: u32 = 3;

/// Values of whatever unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quantiles {
    buckets: Vec<u32>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Quantiles {
    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        let bucket = bucket_of::<BITS>(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] = self.buckets[bucket].saturating_add(1);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// The number of the bucket of a value.
    pub fn bucket_of(value: u64) -> usize {
        bucket_of::<BITS>(value)
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Adds those of another one.
    pub fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *ours = ours.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Takes the values of an earlier state away. The largest is known roughly then: as the end of the last bucket
    /// that is left, but not more than the sum.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        for (ours, theirs) in self.buckets.iter_mut().zip(&earlier.buckets) {
            *ours = ours.saturating_sub(*theirs);
        }
        let last = self.buckets.iter().rposition(|values| *values > 0);
        self.buckets.truncate(last.map_or(0, |it| it + 1));
        self.count = self.count.saturating_sub(earlier.count);
        self.sum = self.sum.saturating_sub(earlier.sum);
        let most = self.max.min(self.sum);
        self.max = last.map_or(0, |it| most.min(start_of::<BITS>(it + 1) - 1));
    }

    /// The buckets that have values, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (usize, u32)> {
        let buckets = self.buckets.iter().copied().enumerate();
        buckets.filter(|(_, values)| *values > 0)
    }

    /// Quantiles of these numbered buckets; `None` if a number has no bucket.
    pub fn of_buckets(
        buckets: impl IntoIterator<Item = (usize, u32)>,
        sum: u64,
        max: u64,
    ) -> Option<Self> {
        let mut all = Self {
            sum,
            max,
            ..Self::default()
        };
        for (bucket, values) in buckets {
            if bucket >= count::<BITS>() {
                return None;
            }
            if bucket >= all.buckets.len() {
                all.buckets.resize(bucket + 1, 0);
            }
            all.buckets[bucket] = all.buckets[bucket].saturating_add(values);
            all.count += u64::from(values);
        }
        Some(all)
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.buckets.capacity() * size_of::<u32>()
    }

    /// The values of the bucket in which so many in a thousand end; `None` if there is none.
    pub fn bucket(&self, per_mille: u64) -> Option<Range<u64>> {
        let bucket = self.bucket_number(per_mille)?;
        Some(start_of::<BITS>(bucket)..start_of::<BITS>(bucket + 1))
    }

    /// How many values are in the bucket of `value` or a later one.
    pub fn count_from(&self, value: u64) -> u64 {
        let later = self.buckets.iter().skip(bucket_of::<BITS>(value));
        later.map(|&it| u64::from(it)).sum()
    }

    /// The value that so many in a thousand reach at most, or nearly so; 0 if there is none. A single value is told as
    /// it is, and so is one that all have.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        if per_mille >= 1_000 {
            return self.max;
        }
        let bucket = self.bucket_number(per_mille);
        bucket.map_or(self.max, |bucket| {
            middle(bucket).max(self.least()).min(self.max)
        })
    }

    /// No value is smaller than this: it would be the smallest one if all others were the largest.
    fn least(&self) -> u64 {
        let others = u128::from(self.count.saturating_sub(1)) * u128::from(self.max);
        let rest = u128::from(self.sum).saturating_sub(others);
        u64::try_from(rest).unwrap_or(u64::MAX)
    }

    fn bucket_number(&self, per_mille: u64) -> Option<usize> {
        let counted = self.buckets.iter().map(|&it| u64::from(it)).sum::<u64>();
        let wanted = (u128::from(counted) * u128::from(per_mille)).div_ceil(1_000);
        let mut seen: u128 = 0;
        for (bucket, values) in self.buckets() {
            seen += u128::from(values);
            if seen >= wanted {
                return Some(bucket);
            }
        }
        None
    }
}

/// The value of a bucket that is as far from its ends in proportion: their harmonic mean.
fn middle(bucket: usize) -> u64 {
    let (from, to) = (start_of::<BITS>(bucket), start_of::<BITS>(bucket + 1));
    if to - from <= 1 {
        return from;
    }
    let (from, to) = (u128::from(from), u128::from(to));
    (from + from * (to - from) / (from + to)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values whose logarithms are spread normally, about 1 ms.
    fn values(count: usize) -> Vec<u64> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut uniform = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let of = |sum: f64| (1e6 * (sum - 6.0).exp()) as u64;
        // Twelve uniform values add up to a normal one, nearly.
        (0..count)
            .map(|_| of((0..12).map(|_| uniform()).sum()))
            .collect()
    }

    #[test]
    fn quantiles_of_a_million_values_are_within_six_per_cent() {
        let mut sorted = values(1_000_000);
        let mut found = Quantiles::default();
        sorted.iter().for_each(|&value| found.add(value));
        sorted.sort_unstable();
        for per_mille in [10, 500, 900, 990, 999] {
            let truth = sorted[sorted.len() * per_mille as usize / 1_000 - 1] as f64;
            let found = found.quantile(per_mille) as f64;
            assert!((found / truth - 1.0).abs() < 0.06, "{per_mille}: {found}");
        }
        assert_eq!(found.quantile(1_000), found.max());
        assert_eq!(found.count(), 1_000_000);
        assert_eq!(found.sum(), sorted.iter().sum::<u64>());
    }

    #[test]
    fn merged_is_added() {
        let (mut one, mut other, mut all) = <(Quantiles, Quantiles, Quantiles)>::default();
        for (number, value) in values(1_000).into_iter().enumerate() {
            all.add(value);
            if number < 300 { &mut one } else { &mut other }.add(value);
        }
        one.merge(&other);
        assert_eq!(one, all);
    }

    #[test]
    fn what_came_after_an_earlier_state_is_left() {
        let (mut earlier, mut later, mut all) = <(Quantiles, Quantiles, Quantiles)>::default();
        for (number, value) in values(1_000).into_iter().enumerate() {
            all.add(value);
            if number < 300 {
                &mut earlier
            } else {
                &mut later
            }
            .add(value);
        }
        all.subtract(&earlier);
        let of = |it: &Quantiles| (it.buckets.clone(), it.count(), it.sum());
        assert_eq!(of(&all), of(&later));
        assert!(all.max() >= later.max() && all.max() - later.max() <= later.max() / 8);
        all.subtract(&later);
        assert_eq!(all, Quantiles::default());
        let (mut two, mut large) = <(Quantiles, Quantiles)>::default();
        [1_000_000, 10_000].iter().for_each(|&value| two.add(value));
        large.add(1_000_000);
        two.subtract(&large);
        assert_eq!(two.max(), 10_000, "not the end of its bucket");
    }

    #[test]
    fn buckets_are_told_and_read_again() {
        let mut found = Quantiles::default();
        values(1_000).into_iter().for_each(|value| found.add(value));
        let again = Quantiles::of_buckets(found.buckets(), found.sum(), found.max());
        assert_eq!(again.as_ref(), Some(&found));
        let beyond = [(count::<BITS>(), 1)];
        assert_eq!(Quantiles::of_buckets(beyond, 0, 0), None);
        let bucket = found.bucket(990).expect("values");
        assert!(bucket.contains(&found.quantile(990)));
        let above = found.count_from(bucket.start);
        assert!((10..100).contains(&above), "{above}");
        assert!(found.count_from(bucket.end) <= 10);
        assert_eq!(
            (found.count_from(0), found.count_from(u64::MAX)),
            (1_000, 0)
        );
        assert_eq!(Quantiles::default().bucket(500), None);
    }

    #[test]
    fn no_quantile_is_below_what_the_sums_know() {
        let of = |values: &[u64]| {
            let mut found = Quantiles::default();
            values.iter().for_each(|&value| found.add(value));
            [500, 990].map(|at| found.quantile(at))
        };
        assert_eq!(of(&[10_400_000]), [10_400_000; 2], "a single one");
        assert_eq!(of(&[10_400_000; 3]), [10_400_000; 2], "all the same");
        assert_eq!(of(&[10_400_000, 20_000_000])[0], 10_400_000, "one of two");
        let [p50, p99] = of(&[10_200_000, 10_400_000, 10_400_001]);
        assert!(p50 >= 10_199_999 && p99 <= 10_400_001, "{p50} {p99}");
        // What a damaged file says of the sum is no reason for more than the largest.
        let odd = Quantiles::of_buckets([(Quantiles::bucket_of(5), 1)], 1_000, 5);
        assert_eq!(odd.map(|it| it.quantile(500)), Some(5));
    }

    #[test]
    fn small_and_large_values_have_a_place() {
        let mut found = Quantiles::default();
        assert_eq!(found.quantile(500), 0);
        found.add(0);
        assert_eq!((found.quantile(500), found.quantile(1_000)), (0, 0));
        found.add(5);
        assert_eq!((found.quantile(500), found.quantile(999)), (0, 5));
        found.add(u64::MAX);
        assert!(found.quantile(999) > u64::MAX / 100 * 94);
        assert_eq!((found.quantile(1_000), found.max()), (u64::MAX, u64::MAX));
    }
}

//! How long the calls of a method took: a histogram with four buckets to an octave, so that a
//! quantile is at most some 12 % off. Under the GVL, at returns.

/// Buckets: those below 4 hold one value each.
const BUCKETS: usize = 4 * 63;

/// The durations of calls, in ticks of the clock.
#[derive(Debug, Clone)]
pub(super) struct Latencies {
    buckets: Box<[u64; BUCKETS]>,
    count: u64,
    max: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            buckets: Box::new([0; BUCKETS]),
            count: 0,
            max: 0,
        }
    }
}

impl Latencies {
    /// Adds a call.
    pub(super) fn add(&mut self, ticks: u64) {
        self.buckets[bucket_of(ticks)] += 1;
        self.count += 1;
        self.max = self.max.max(ticks);
    }

    /// How many calls have ended.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.buckets)
    }

    /// The longest.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// What `percent` of the calls took at most, or nearly so.
    pub(super) fn quantile(&self, percent: u64) -> u64 {
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
    if ticks < 4 {
        return ticks as usize;
    }
    let octave = ticks.ilog2() as usize;
    (octave - 1) * 4 + (ticks >> (octave - 2)) as usize % 4
}

/// The least duration in a bucket.
fn start_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let octave = bucket / 4 + 1;
    let start = (4 + bucket as u128 % 4) << (octave - 2);
    u64::try_from(start).unwrap_or(u64::MAX)
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
    fn quantiles_are_within_an_eighth() {
        let mut latencies = Latencies::default();
        (1..=10_000).for_each(|ticks| latencies.add(ticks));
        for (percent, truth) in [(50, 5_000.0), (99, 9_900.0)] {
            let found = latencies.quantile(percent) as f64;
            assert!((found / truth - 1.0).abs() < 0.125, "{percent}: {found}");
        }
        assert_eq!((latencies.count(), latencies.max()), (10_000, 10_000));
        assert!(latencies.quantile(100) <= latencies.max() && latencies.memory() > 2_000);
        assert_eq!(Latencies::default().quantile(50), 0);
    }
}

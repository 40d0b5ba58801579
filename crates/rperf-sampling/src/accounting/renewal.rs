//! Sampling points on the time axis of one state of one thread. Pure arithmetic;
//! called by the accounting, under the GVL.

use rperf_vm::Dither;

/// A renewal process: points with dithered gaps on an axis that only moves while
/// the thread is in one state. A segment is sampled when it crosses a point, and
/// the sample weighs what has unsampled on the axis since the last point that was
/// crossed. So long segments get their own stack, short ones are sampled in
/// proportion to their length, and nothing is lost or counted twice.
#[derive(Debug, Clone)]
pub struct Renewal {
    /// From the axis' current end to the next point.
    remaining: u64,
    /// Passed since the last crossed point: not yet in any sample.
    unsampled: u64,
}

impl Renewal {
    /// An axis at its start, with the first point within one interval.
    pub fn new(interval: u64, dither: &mut Dither) -> Self {
        Self {
            remaining: dither.first_gap(interval),
            unsampled: 0,
        }
    }

    /// Moves the axis by `length` ns. Returns the weight to record now, or 0.
    /// `interval` is the one that it was made for, or changed to ([`Renewal::stretch`]).
    #[inline]
    pub fn advance(&mut self, length: u64, interval: u64, dither: &mut Dither) -> u64 {
        self.unsampled += length;
        if length <= self.remaining {
            self.remaining -= length;
            return 0;
        }
        self.cross(length, interval, dither)
    }

    /// Gaps average `to` ns from now on, and `from` ns so far. The next point moves in
    /// proportion: the axis is what it would have been with a longer or shorter unit, and
    /// where it stands between two points is as random as before.
    #[cold]
    pub fn stretch(&mut self, from: u64, to: u64) {
        self.remaining = scale(self.remaining, from, to);
    }

    /// Scales what has passed since the last point by `to / from`. Returns by how many ns that
    /// has become less: so much isn't for the next sample. If it is negative, the next one gets
    /// more than there is.
    #[cold]
    pub fn stretch_unsampled(&mut self, from: u64, to: u64) -> i64 {
        let before = self.unsampled;
        self.unsampled = scale(before, from, to);
        before as i64 - self.unsampled as i64
    }

    /// Whether there is anything that no sample has taken yet.
    pub fn has_unsampled(&self) -> bool {
        self.unsampled > 0
    }

    /// What no sample has taken yet; the caller records it. The points stay.
    pub fn flush(&mut self) -> u64 {
        std::mem::take(&mut self.unsampled)
    }

    #[cold]
    fn cross(&mut self, length: u64, interval: u64, dither: &mut Dither) -> u64 {
        let mut beyond = length - self.remaining;
        // Gaps average one interval: whole intervals can be jumped over, and the
        // last few points are drawn, so that the position stays random.
        let jump = (beyond / interval).saturating_sub(2) * interval;
        beyond -= jump;
        let mut gap = dither.gap(interval);
        while gap < beyond {
            beyond -= gap;
            gap = dither.gap(interval);
        }
        self.remaining = gap - beyond;
        let weight = self.unsampled - beyond.min(self.unsampled);
        self.unsampled -= weight;
        weight
    }
}

fn scale(length: u64, from: u64, to: u64) -> u64 {
    let scaled = u128::from(length) * u128::from(to) / u128::from(from.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Share of A when segments of A and B take turns, as the samples tell it.
    fn share_of_a(a: u64, b: u64) -> f64 {
        let interval = 1_000_000;
        let mut dither = Dither::new(42);
        let mut axis = Renewal::new(interval, &mut dither);
        let mut weights = [0u64; 2];
        for _ in 0..(400_000_000_000 / (a + b)).min(2_000_000) {
            weights[0] += axis.advance(a, interval, &mut dither);
            weights[1] += axis.advance(b, interval, &mut dither);
        }
        weights[0] as f64 / (weights[0] + weights[1]) as f64
    }

    #[test]
    fn shares_are_right_for_any_pattern_of_lengths() {
        for (a, b) in [
            (10_000, 990_000),
            (100_000, 900_000),
            (300_000, 700_000),
            (50_000, 5_000_000),
            (500_000, 500_000),
            (3_000_000, 5_000_000),
        ] {
            let truth = a as f64 / (a + b) as f64;
            let seen = share_of_a(a, b);
            assert!(
                (seen - truth).abs() < 0.01,
                "{a}/{b}: truth {truth:.4}, seen {seen:.4}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_nanosecond_is_in_one_sample_or_in_the_rest(
            lengths in prop::collection::vec(0u64..20_000_000, 1..200),
            seed: u64,
            interval in 100_000u64..2_000_000_000,
        ) {
            let mut dither = Dither::new(seed);
            let mut axis = Renewal::new(interval, &mut dither);
            let mut recorded = 0;
            let mut samples = 0;
            for &length in &lengths {
                let weight = axis.advance(length, interval, &mut dither);
                recorded += weight;
                samples += u64::from(weight > 0);
            }
            let life: u64 = lengths.iter().sum();
            prop_assert!(samples <= life / (interval / 2) + 1);
            let rest = axis.flush();
            prop_assert!(rest < interval * 3 / 2 + 1);
            prop_assert_eq!(recorded + rest, life);
            prop_assert_eq!(axis.flush(), 0);
        }
    }
}

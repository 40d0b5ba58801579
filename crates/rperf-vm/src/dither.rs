//! Random gaps between sampling points, and between notes of the time. One generator
//! belongs to one owner (a thread's accounting, the timer's handler, the clock of a
//! trace); it allocates and locks nothing.

/// A xorshift64* generator (Vigna, "An experimental exploration of Marsaglia's
/// xorshift generators, scrambled", 2016): three shifts and a multiplication, so
/// that a signal handler can afford it. Dithering needs no better randomness.
#[derive(Debug, Clone)]
pub struct Dither(u64);

impl Dither {
    /// A generator; equal seeds give equal gaps.
    pub fn new(seed: u64) -> Self {
        // One round of splitmix64, so that near seeds give far sequences.
        let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((x ^ (x >> 31)).max(1))
    }

    /// A gap drawn evenly from half to one and a half intervals. Programs that
    /// are in step with a fixed interval would be sampled at the same point of
    /// their cycle each time; these gaps aren't in step with anything.
    #[inline]
    pub fn gap(&mut self, interval: u64) -> u64 {
        interval / 2 + self.below(interval)
    }

    /// The first gap: drawn evenly from zero to one interval.
    #[inline]
    pub fn first_gap(&mut self, interval: u64) -> u64 {
        self.below(interval)
    }

    /// A gap with the exponential distribution around one interval: the next
    /// point is as likely at any time, whatever came before.
    #[inline]
    pub fn memoryless_gap(&mut self, interval: u64) -> u64 {
        // 53 random bits, never 0; the logarithm is then below 37.
        let even = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-even.ln() * interval as f64) as u64
    }

    /// A number from 0 to 1, which it doesn't reach.
    pub fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`, or 0.
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_even_around_the_interval() {
        let mut dither = Dither::new(7);
        let gaps: Vec<u64> = (0..100_000).map(|_| dither.gap(1000)).collect();
        assert!(gaps.iter().all(|&gap| (500..1500).contains(&gap)));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        assert!((mean - 999.5).abs() < 5.0, "mean {mean}");
        let low = gaps.iter().filter(|&&gap| gap < 750).count() as f64 / gaps.len() as f64;
        assert!(
            (low - 0.25).abs() < 0.01,
            "a quarter in the first quarter, got {low}"
        );
    }

    #[test]
    fn memoryless_gaps_have_the_interval_as_mean_and_deviation() {
        let mut dither = Dither::new(5);
        let gaps: Vec<f64> = (0..200_000)
            .map(|_| dither.memoryless_gap(1000) as f64)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1000.0).abs() < 10.0, "mean {mean}");
        assert!(
            (square / (2.0 * mean * mean) - 1.0).abs() < 0.03,
            "second moment {square}"
        );
    }

    #[test]
    fn first_gaps_start_at_zero() {
        let mut dither = Dither::new(1);
        assert!((0..1000).all(|_| dither.first_gap(10) < 10));
        assert_eq!(dither.first_gap(0), 0);
    }
}

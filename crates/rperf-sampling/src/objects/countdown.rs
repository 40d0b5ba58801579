//! When an object becomes a sample, and how many objects it stands for.

use rperf_vm::Dither;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// Gaps are as many times the usual ones at most.
const MOST: u64 = 1 << 12;

/// The bytes that are left until the next sample. With the GVL only, so it needs no locked
/// instructions.
#[derive(Debug)]
pub struct Countdown(AtomicI64);

impl Countdown {
    /// A countdown that doesn't end.
    pub const fn stopped() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }

    /// So many bytes are made. Returns whether the next sample is among them.
    #[inline]
    pub fn ends_within(&self, bytes: i64) -> bool {
        let left = self.0.load(Relaxed).wrapping_sub(bytes);
        self.0.store(left, Relaxed);
        left < 0
    }

    /// Stops it while our own code makes objects. [`Self::go_on`] takes what this returns.
    pub fn pause(&self) -> i64 {
        self.0.swap(i64::MAX, Relaxed)
    }

    /// Goes on where it was stopped.
    pub fn go_on(&self, left: i64) {
        self.0.store(left, Relaxed);
    }

    /// The next sample comes after so many bytes, or never.
    #[inline]
    pub fn set(&self, gap: Option<u64>) {
        let left = gap.map_or(i64::MAX, |gap| i64::try_from(gap).unwrap_or(i64::MAX));
        self.0.store(left, Relaxed);
    }
}

/// How many objects of so many bytes one sample of them stands for, where gaps have this mean.
pub(super) fn weight(bytes: u64, mean: u64) -> f64 {
    // An object without a size would never be drawn.
    -1.0 / (-(bytes.max(1) as f64) / mean as f64).exp_m1()
}

/// The gaps between samples, in bytes: memoryless, so that each byte is as likely to be the next one,
/// and whole: a gap ends within an object of `s` bytes with the probability 1 - exp(-s / mean).
#[derive(Debug)]
pub(super) struct Gaps {
    dither: Dither,
    usual: u64,
    mean: u64,
    longest: u64,
    most: u64,
}

impl Gaps {
    pub(super) fn new(seed: u64, mean: u64) -> Self {
        Self {
            dither: Dither::new(seed),
            usual: mean,
            mean,
            longest: mean,
            most: mean * MOST,
        }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.dither.memoryless_gap(self.mean)
    }

    /// How many objects of so many bytes one sample of them stands for.
    pub(super) fn weight(&self, bytes: u64) -> f64 {
        weight(bytes, self.mean)
    }

    /// The mean that is in force.
    pub(super) fn mean(&self) -> u64 {
        self.mean
    }

    /// The usual mean, which is the shortest.
    pub(super) fn usual(&self) -> u64 {
        self.usual
    }

    /// Doubles the usual mean, from the next gap on. Returns whether there was room for it.
    pub(super) fn lengthen_for_good(&mut self) -> bool {
        if self.usual >= self.most {
            return false;
        }
        self.usual *= 2;
        self.mean = self.mean.max(self.usual);
        self.longest = self.longest.max(self.mean);
        true
    }

    /// Lengthens or shortens the gaps from the next one on, which depends on none before.
    pub(super) fn change(&mut self, step: Step) {
        self.mean = match step {
            Step::Longer => (self.mean * 2).min(self.most),
            Step::Shorter => (self.mean / 2).max(self.usual),
        };
        self.longest = self.longest.max(self.mean);
    }

    /// The longest mean that has been in force.
    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    pub(super) fn forget_longest(&mut self) {
        self.longest = self.mean;
    }
}

/// A change of the gaps: to twice their length, or half of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Longer,
    Shorter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_countdown_does_not_end() {
        let countdown = Countdown::stopped();
        assert!(!countdown.ends_within(i64::from(u32::MAX)));
        countdown.set(Some(99));
        assert!(!countdown.ends_within(99));
        assert!(countdown.ends_within(1));
        countdown.set(None);
        assert!(!countdown.ends_within(640));
        countdown.set(Some(99));
        let left = countdown.pause();
        assert!(!countdown.ends_within(640));
        countdown.go_on(left);
        assert!(!countdown.ends_within(99) && countdown.ends_within(1));
    }

    #[test]
    fn weights_stand_for_all_objects_of_each_size() {
        for (bytes, objects) in [(40, 400_000), (640, 100_000), (100_000, 20_000)] {
            let mut gaps = Gaps::new(bytes, 8192);
            let countdown = Countdown::stopped();
            countdown.set(Some(gaps.next()));
            let (mut sum, mut squares) = (0.0, 0.0);
            for object in 0..objects {
                if object == objects / 2 {
                    gaps.change(Step::Longer);
                }
                if countdown.ends_within(bytes as i64) {
                    sum += gaps.weight(bytes);
                    squares += gaps.weight(bytes).powi(2);
                    countdown.set(Some(gaps.next()));
                }
            }
            let off = (sum - f64::from(objects)).abs();
            assert!(off < 5.0 * f64::sqrt(squares), "{bytes}: {sum}");
        }
    }

    #[test]
    fn gaps_come_back_to_their_usual_length() {
        let mut gaps = Gaps::new(1, 8192);
        gaps.change(Step::Shorter);
        assert_eq!(gaps.mean, 8192);
        for _ in 0..30 {
            gaps.change(Step::Longer);
        }
        assert_eq!(gaps.longest(), 8192 * MOST);
        for _ in 0..30 {
            gaps.change(Step::Shorter);
        }
        gaps.forget_longest();
        assert_eq!(gaps.longest(), 8192);
    }
}

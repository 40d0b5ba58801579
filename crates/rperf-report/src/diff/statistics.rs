//! The arithmetic that tells change from noise. Called by `diff`; pure, any thread.

use crate::chance::{one_sided, two_sided};

/// A row's value in one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed {
    pub(super) value: f64,
    /// Its variance by sampling alone, if that is known.
    pub(super) by_sampling: Option<f64>,
    /// The square of a sample's mean value.
    pub(super) sample: f64,
}

/// The mean of a row's values over the runs of one side, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// Variance of the mean; `None` if nothing is known about it.
    variance: Option<f64>,
    /// The part of the variance that the row's own runs tell, and its degrees of freedom.
    own: (f64, f64),
    /// The square of a sample's mean value: no difference is surer than one sample.
    sample: f64,
}

/// By what share of a value runs differ beyond sampling, for rows that don't tell
/// themselves. Squared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Between {
    weighted: f64,
    weights: f64,
}

impl Between {
    /// Takes in a row that several runs have. Large rows tell more.
    pub(super) fn add(&mut self, runs: &[Observed]) {
        let (mean, spread) = mean_and_spread(runs);
        if runs.len() > 1 && mean > 0.0 {
            let by_sampling: f64 = runs.iter().filter_map(|run| run.by_sampling).sum();
            self.weighted += (spread - by_sampling / runs.len() as f64) / mean;
            self.weights += mean;
        }
    }

    /// The share, squared; `None` without several runs.
    pub(super) fn share_squared(&self) -> Option<f64> {
        (self.weights > 0.0).then(|| (self.weighted / self.weights).max(0.0))
    }
}

/// The mean of the runs, and their variance.
pub(super) fn mean_and_spread(runs: &[Observed]) -> (f64, f64) {
    let count = runs.len() as f64;
    let mean = runs.iter().map(|run| run.value).sum::<f64>() / count;
    let squares = runs.iter().map(|run| (run.value - mean).powi(2));
    (mean, squares.sum::<f64>() / (count - 1.0).max(1.0))
}

impl Estimate {
    /// From the runs of one side. `between` is by what share, squared, runs differ at
    /// least.
    pub(super) fn of(runs: &[Observed], between: f64) -> Self {
        let count = runs.len() as f64;
        let (mean, spread) = mean_and_spread(runs);
        let by_sampling: Option<f64> = runs.iter().map(|run| run.by_sampling).sum();
        let sample = runs.iter().map(|run| run.sample).sum::<f64>() / (count * count);
        let has_several = runs.len() > 1;
        let known = by_sampling.unwrap_or(0.0) / count + between * mean * mean;
        // A few runs may agree by chance: they can't be surer than all rows together.
        let own = if has_several {
            (spread - known).max(0.0)
        } else {
            0.0
        };
        let is_known = has_several || by_sampling.is_some();
        Self {
            mean,
            variance: is_known.then(|| (known + own) / count),
            own: (own / count, count - 1.0),
            sample,
        }
    }

    /// From the runs of one side, whose mean has this variance, known with so many degrees of freedom.
    pub(super) fn known(runs: &[Observed], variance: f64, freedom: f64) -> Self {
        Self {
            variance: Some(variance),
            own: (variance, freedom),
            ..Self::of(runs, 0.0)
        }
    }

    /// From the runs of one side by nothing but what they differ by; for what is not one
    /// of many rows.
    pub(super) fn of_one(runs: &[Observed], allowance: f64) -> Self {
        let estimate = Self::of(runs, allowance);
        if runs.len() < 2 {
            return estimate;
        }
        let spread = mean_and_spread(runs).1 / runs.len() as f64;
        let least = Self::of(runs, 0.0).variance.unwrap_or(0.0);
        Self {
            variance: Some(spread.max(least)),
            own: (spread.max(least), estimate.own.1),
            ..estimate
        }
    }

    /// The estimate for `factor` times the value.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            variance: self.variance.map(|variance| variance * factor * factor),
            own: (self.own.0 * factor * factor, self.own.1),
            ..*self
        }
    }

    /// How likely a difference as large as this one, either way, is by chance.
    pub(super) fn p_different(&self, other: &Self) -> Option<f64> {
        let (t, freedom) = self.welch(other)?;
        Some(two_sided(t, freedom))
    }

    /// How likely it is by chance that this is greater by as much as it is.
    pub(super) fn p_greater(&self, other: &Self) -> Option<f64> {
        let (t, freedom) = self.welch(other)?;
        Some(one_sided(t, freedom))
    }

    /// Welch's t and its degrees of freedom.
    fn welch(&self, other: &Self) -> Option<(f64, f64)> {
        let (own, others) = (self.variance?, other.variance?);
        let difference = self.mean - other.mean;
        if difference == 0.0 {
            return Some((0.0, 1.0));
        }
        let variance = own + others;
        let least = (self.sample + other.sample) / 2.0;
        let t = difference / (variance + least).sqrt();
        let uncertain: f64 = [self.own, other.own]
            .iter()
            .filter(|(own, _)| *own > 0.0)
            .map(|(own, freedom)| own * own / freedom)
            .sum();
        let freedom = if uncertain > 0.0 {
            variance * variance / uncertain
        } else {
            f64::INFINITY
        };
        // Without any variance at all, nothing is known but that they differ.
        Some(if t.is_finite() {
            (t, freedom)
        } else {
            (0.0, 1.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-4
    }

    fn observed(value: f64, by_sampling: Option<f64>) -> Observed {
        Observed {
            value,
            by_sampling,
            sample: 1.0,
        }
    }

    #[test]
    fn one_run_has_the_noise_of_its_samples_and_the_allowance() {
        let one = |value: f64, between| Estimate::of(&[observed(value, Some(value))], between);
        let p = one(1100.0, 0.0).p_different(&one(1000.0, 0.0));
        // 100 / sqrt(2101) = 2.18
        let p = p.expect("known");
        assert!(near(p, 0.0291), "{p}");
        let p = one(1100.0, 4e-4).p_different(&one(1000.0, 4e-4));
        assert!(p.expect("known") > 0.05);
        let unknown = Estimate::of(&[observed(5.0, None)], 4e-4);
        assert_eq!(unknown.p_different(&one(5.0, 0.0)), None);
    }

    #[test]
    fn runs_that_agree_by_chance_are_no_surer_than_their_samples() {
        let runs = |value: f64| [observed(value, Some(value)); 3];
        let [base, target] = [100.0, 120.0].map(|value| Estimate::of(&runs(value), 0.0));
        let p = target.p_greater(&base).expect("known");
        assert!((0.005..0.1).contains(&p), "{p}");
        assert!(base.p_greater(&target).expect("known") > 0.9);
    }

    #[test]
    fn what_runs_differ_by_is_learned_from_all_rows() {
        let mut between = Between::default();
        assert_eq!(between.share_squared(), None);
        between.add(&[900.0, 1100.0].map(|value| observed(value, Some(0.0))));
        between.add(&[10.0, 10.0].map(|value| observed(value, Some(0.0))));
        // 20,000 / 1,000 / 1,010
        let share = between.share_squared().expect("several runs");
        assert!(near(share, 0.0198), "{share}");
    }
}

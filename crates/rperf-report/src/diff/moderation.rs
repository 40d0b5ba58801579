//! The variance between the runs of a row that is measured, not sampled: what its own few runs tell, moderated by
//! what those of all rows tell. Called by `diff`; pure, any thread.
//!
//! After Smyth, Linear Models and Empirical Bayes Methods (2004): variances of rows are those of a prior, which has as
//! many degrees of freedom as the rows' variances agree. The prior goes by a power of the row's mean, because short
//! rows vary by more of themselves. So a row that agrees in all of its runs isn't called as unsteady as others are,
//! and a few runs that agree by chance aren't called exact.

use super::statistics::{Estimate, Observed, mean_and_spread};
use crate::chance::{digamma, trigamma, trigamma_inverse};

/// With fewer rows, the power of the mean is not learned: then deviations are a share of it.
const LEAST_ROWS_FOR_POWER: usize = 10;

/// The power with which deviations are a share of the mean. No more is believed, nor less than a constant deviation.
const SHARE: f64 = 2.0;

/// The variance of values that are whole numbers, of which all runs have the same.
const LEAST_VARIANCE: f64 = 1.0 / 12.0;

/// What the rows tell of the variance of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moderation {
    /// The logarithm of the variance of a row whose mean is 1.
    at_one: f64,
    /// The power of the mean that variances go by.
    power: f64,
    /// How many degrees of freedom that is worth.
    freedom: f64,
    /// The degrees of freedom of all rows together.
    all: f64,
}

/// A row of one side: the logarithm of its mean, that of its variance without its bias, and the degrees of freedom.
struct Seen {
    mean: f64,
    variance: f64,
    freedom: f64,
}

impl Seen {
    fn of(runs: &[Observed]) -> Option<Self> {
        let (mean, spread) = mean_and_spread(runs);
        if runs.len() < 2 || mean <= 0.0 {
            return None;
        }
        let freedom = runs.len() as f64 - 1.0;
        Some(Self {
            mean: mean.ln(),
            variance: spread.max(LEAST_VARIANCE).ln() - digamma(freedom / 2.0)
                + (freedom / 2.0).ln(),
            freedom,
        })
    }
}

impl Moderation {
    /// From the runs of each row on both sides, if one of its means is at least `least`: shorter ones, of which there
    /// may be thousands, tell what disturbs the machine, and hardly anything of longer ones.
    pub(super) fn of(rows: impl Iterator<Item = [Vec<Observed>; 2]>, least: f64) -> Self {
        let is_large = |sides: &[Vec<Observed>; 2]| {
            let mut means = sides.iter().map(|runs| mean_and_spread(runs).0);
            means.any(|mean| mean >= least)
        };
        let runs = rows.filter(is_large).flatten();
        let rows: Vec<Seen> = runs.filter_map(|runs| Seen::of(&runs)).collect();
        let count = rows.len() as f64;
        let average = |of: &dyn Fn(&Seen) -> f64| rows.iter().map(of).sum::<f64>() / count.max(1.0);
        let [mean, variance] = [average(&|it| it.mean), average(&|it| it.variance)];
        let spread_of_means = average(&|it| (it.mean - mean).powi(2));
        let learned = rows.len() >= LEAST_ROWS_FOR_POWER && spread_of_means > 1e-6;
        let (power, parameters) = if learned {
            let both = average(&|it| (it.mean - mean) * (it.variance - variance));
            ((both / spread_of_means).clamp(0.0, SHARE), 2.0)
        } else {
            (SHARE, 1.0)
        };
        let at_one = variance - power * mean;
        let squares: f64 = rows
            .iter()
            .map(|it| (it.variance - at_one - power * it.mean).powi(2))
            .sum();
        let differ = squares / (count - parameters).max(1.0);
        // What rows' variances differ by beyond what few runs make of equal ones.
        let beyond = differ - average(&|it| trigamma(it.freedom / 2.0));
        let all: f64 = rows.iter().map(|it| it.freedom).sum();
        let freedom = match beyond {
            _ if count <= parameters => 0.0,
            beyond if beyond > 0.0 => (2.0 * trigamma_inverse(beyond)).min(all),
            // The rows don't tell the prior better than all their runs do.
            _ => all,
        };
        let bias = if freedom > 0.0 {
            digamma(freedom / 2.0) - (freedom / 2.0).ln()
        } else {
            0.0
        };
        Self {
            at_one: at_one + bias,
            power,
            freedom,
            all,
        }
    }

    /// By what share rows of this mean deviate, and with how many degrees of freedom that is known.
    #[cfg(test)]
    pub(super) fn of_mean(&self, mean: f64) -> (f64, f64) {
        let variance = (self.at_one + self.power * mean.ln()).exp();
        (variance.sqrt() / mean, self.freedom)
    }

    /// The mean of a row's runs, and how sure it is. A single run tells nothing of its variance.
    pub(super) fn estimate(&self, runs: &[Observed]) -> Estimate {
        if runs.len() < 2 {
            return Estimate::of(runs, 0.0);
        }
        let (mean, spread) = mean_and_spread(runs);
        let count = runs.len() as f64;
        let own = count - 1.0;
        let prior = if mean > 0.0 {
            (self.at_one + self.power * mean.ln()).exp()
        } else {
            0.0
        };
        let variance = (self.freedom * prior + own * spread) / (self.freedom + own);
        // Two sides of a row share what the prior doesn't know of it, so each has half of that. Both together know no
        // more than all rows.
        let freedom = (self.freedom / 2.0 + own).min((self.all / 2.0).max(own));
        Estimate::known(runs, variance / count, freedom)
    }
}

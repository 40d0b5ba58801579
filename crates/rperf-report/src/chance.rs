//! How likely something is by chance: Student's distribution, and what counts of many tests. Called by `diff` and
//! `growth`; pure, any thread.

use libm::{erfc, lgamma};
use rperf_model::Order;

/// The largest p that counts, if at most `rate` of those that count may be wrong, after
/// Benjamini and Hochberg. `tested` are all that were tested, also those without a p
/// in `ps`.
pub(crate) fn false_discovery_limit(mut ps: Vec<f64>, tested: usize, rate: f64) -> f64 {
    ps.order_by(f64::total_cmp);
    let tested = tested.max(ps.len()) as f64;
    let counted = ps.iter().enumerate();
    counted
        .filter(|(rank, p)| **p <= rate * (rank + 1) as f64 / tested)
        .map(|(_, p)| *p)
        .fold(-1.0, f64::max)
}

/// How likely Student's t is as far from 0 as `t`, either way.
pub(crate) fn two_sided(t: f64, freedom: f64) -> f64 {
    if freedom > 1e6 {
        return erfc(t.abs() / std::f64::consts::SQRT_2);
    }
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function, by its continued fraction after Lentz.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges quickly on this side only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (1.0 - x).ln();
    front.exp() / a * beta_fraction(a, b, x)
}

/// The fraction 1/(1 + n1/(1 + n2/(1 + ..))).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const STEPS: u32 = 500;
    let kept = |value: f64| if value.abs() < TINY { TINY } else { value };
    // The denominator of the whole, and how its last two approximations relate.
    let mut value = 1.0;
    let (mut c, mut d) = (1.0, 0.0);
    for step in 1..STEPS {
        let m = f64::from(step / 2);
        let numerator = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / kept(1.0 + numerator * d);
        c = kept(1.0 + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-12 {
            break;
        }
    }
    1.0 / value
}

/// How likely Student's t is as great as `t`.
pub(crate) fn one_sided(t: f64, freedom: f64) -> f64 {
    let half = two_sided(t, freedom) / 2.0;
    if t > 0.0 { half } else { 1.0 - half }
}

/// The derivative of the logarithm of the gamma function, for x > 0: by the asymptotic series, from 6 on (Abramowitz
/// and Stegun 6.3.5 and 6.3.18).
pub(crate) fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    sum + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

/// The derivative of [`digamma`], for x > 0 (Abramowitz and Stegun 6.4.6 and 6.4.12).
pub(crate) fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + series * square / x
}

/// The x with this [`trigamma`], which is greater than 0: by bisection of its logarithm, because it falls with x.
pub(crate) fn trigamma_inverse(value: f64) -> f64 {
    let [mut low, mut high] = [-14.0_f64, 14.0];
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if trigamma(middle.exp()) > value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (t, freedom, p) in [
            (12.706, 1.0, 0.05),
            (4.303, 2.0, 0.05),
            (2.776, 4.0, 0.05),
            (2.228, 10.0, 0.05),
            (3.169, 10.0, 0.01),
            (1.984, 100.0, 0.05),
            (1.96, f64::INFINITY, 0.05),
            (2.5758, f64::INFINITY, 0.01),
            (0.0, 7.0, 1.0),
        ] {
            let found = two_sided(t, freedom);
            assert!((found - p).abs() < 1e-4, "t={t} freedom={freedom}: {found}");
        }
    }

    #[test]
    fn derivatives_of_the_gamma_function_are_those_of_the_tables() {
        let euler = 0.577_215_664_901_532_9;
        let square = std::f64::consts::PI.powi(2);
        for (x, first, second) in [
            (1.0, -euler, square / 6.0),
            (0.5, -euler - 2.0 * std::f64::consts::LN_2, square / 2.0),
            (2.0, 1.0 - euler, square / 6.0 - 1.0),
            (10.0, 2.251_752_589_066_721, 0.105_166_335_681_685_75),
        ] {
            assert!((digamma(x) - first).abs() < 1e-8, "{x}: {}", digamma(x));
            assert!((trigamma(x) - second).abs() < 1e-8, "{x}: {}", trigamma(x));
            let inverse = trigamma_inverse(second);
            assert!((inverse - x).abs() < 1e-6, "{x}: {inverse}");
        }
    }

    #[test]
    fn more_may_count_if_more_are_small() {
        let limit = |ps: &[f64]| false_discovery_limit(ps.to_vec(), ps.len(), 0.05);
        assert_eq!(limit(&[0.04]), 0.04);
        assert_eq!(limit(&[0.04, 0.9]), -1.0);
        assert_eq!(limit(&[0.04, 0.02]), 0.04);
        assert_eq!(limit(&[0.001, 0.9, 0.9, 0.02]), 0.02);
        assert_eq!(limit(&[]), -1.0);
    }
}

//! How runs are made comparable. Called by `diff`; any thread.

use super::error::DiffError;
use super::run::Run;

/// By what runs are made comparable: each is scaled as if it had as much of it as the
/// runs of the base have on the average.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Normalize {
    /// Runs are not scaled.
    #[default]
    No,
    /// By their totals: the diff shows how the division of the total changes.
    Total,
    /// By how long they took.
    Duration,
    /// By how many different values a label has.
    Label,
    /// By how many requests have ended.
    Requests,
}

/// The requests of both sides, where values are scaled by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerRequest {
    /// The requests of all runs of each side.
    pub requests: [u64; 2],
    /// Values are those of so many.
    pub scaled_to: u64,
}

impl PerRequest {
    pub(super) fn of(base: &[Run], target: &[Run]) -> Self {
        let sum = |runs: &[Run]| {
            let requests = runs.iter().map(|run| run.requests);
            requests.fold(0, u64::saturating_add)
        };
        Self {
            requests: [sum(base), sum(target)],
            scaled_to: size_of_base(base, Normalize::Requests) as u64,
        }
    }

    /// What one request has of it.
    pub fn of_one(self, value: i64) -> f64 {
        value as f64 / self.scaled_to.max(1) as f64
    }
}

/// What each of `runs` is scaled by to be comparable with those of `base`.
pub(super) fn scales(
    base: &[Run],
    runs: &[Run],
    normalize: Normalize,
) -> Result<Vec<f64>, DiffError> {
    let size = size_of_base(base, normalize);
    let scale = |run| normalize.ratio(size, normalize.size(run));
    runs.iter().map(scale).collect()
}

/// What a run of the base has, in the mean; of requests a whole number.
fn size_of_base(base: &[Run], normalize: Normalize) -> f64 {
    let sizes = base.iter().map(|run| normalize.size(run));
    let mean = sizes.sum::<f64>() / base.len() as f64;
    match normalize {
        Normalize::Requests => mean.ceil(),
        _ => mean,
    }
}

impl Normalize {
    /// What all values of `base` together are to be multiplied by to be comparable with
    /// all of `target` together.
    pub fn scale_of_sums(self, base: &[Run], target: &[Run]) -> Result<f64, DiffError> {
        let size = |runs: &[Run]| runs.iter().map(|run| self.size(run)).sum();
        self.ratio(size(target), size(base))
    }

    fn size(self, run: &Run) -> f64 {
        match self {
            Normalize::No => 1.0,
            Normalize::Total => run.total.value as f64,
            Normalize::Duration => run.duration_ns as f64,
            Normalize::Label => run.label_values as f64,
            Normalize::Requests => run.requests as f64,
        }
    }

    fn ratio(self, one: f64, other: f64) -> Result<f64, DiffError> {
        let what = match self {
            Normalize::No => "runs",
            Normalize::Total => "total",
            Normalize::Duration => "duration",
            Normalize::Label => "samples with the label",
            Normalize::Requests => "requests that were judged",
        };
        if one > 0.0 && other > 0.0 {
            Ok(one / other)
        } else {
            Err(DiffError::NothingToNormalize(what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::Diff;
    use crate::top::Sort;
    use rperf_model::label_keys::LATENCY;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::{LatencyClass, RequestValues, Requests, State};

    const MS: i64 = 1_000_000;

    /// A run with so many requests, which took so many ms together.
    fn run(count: u64, ms: i64) -> Run {
        let mut test = TestProfile::cpu();
        let labels = test.labels(&[("endpoint", "GET /"), (LATENCY, "typical")]);
        test.add(&["main"], 1, labels, State::Running, ms * MS);
        let mut requests = Requests::new("endpoint", "GET /");
        for _ in 0..count {
            requests.add(
                LatencyClass::Typical,
                RequestValues::default().ended_at(1),
                true,
            );
        }
        test.profile.requests = vec![requests];
        Run::of(&test.profile, None)
    }

    fn diff(base: &[Run], target: &[Run], normalize: Normalize) -> Diff {
        Diff::of(base, target, Sort::SelfValue, normalize).expect("comparable")
    }

    #[test]
    fn what_is_scaled_by_requests_is_known_of_one() {
        let compared = diff(&[run(10, 30)], &[run(40, 200)], Normalize::Requests);
        let per = compared.per_request.expect("scaled by requests");
        assert_eq!((per.requests, per.scaled_to), ([10, 40], 10));
        let total = &compared.total;
        let ms = [total.base, total.target, total.delta()].map(|it| per.of_one(it) / MS as f64);
        assert_eq!(ms, [3.0, 5.0, 2.0]);
        let others = diff(&[run(10, 30)], &[run(40, 200)], Normalize::Total);
        assert_eq!(others.per_request, None);
    }

    #[test]
    fn runs_with_different_numbers_of_requests_are_scaled_to_a_whole_one() {
        // 2.5 requests each, and one of 4 ms.
        let base = [run(2, 8), run(3, 12)];
        let compared = diff(&base, &[run(5, 20)], Normalize::Requests);
        let per = compared.per_request.expect("scaled by requests");
        assert_eq!((per.requests, per.scaled_to), ([5, 5], 3));
        let total = &compared.total;
        assert_eq!([total.base, total.target], [12 * MS; 2]);
        assert_eq!(per.of_one(total.base), 4.0 * MS as f64);
        let none = Diff::of(&base, &[run(0, 1)], Sort::SelfValue, Normalize::Requests);
        assert!(none.is_err());
    }
}

//! Changes between runs, told from noise by the rule of docs/guide/comparing.md. Called by `rperf
//! diff` and `Rperf.diff`; any thread.

mod error;
mod found;
mod moderation;
mod run;
mod scaling;
mod statistics;
mod suite_run;

pub use error::DiffError;
pub use run::Run;
pub use scaling::{Normalize, PerRequest};
pub use suite_run::{NoTests, TestValue};

use crate::chance::false_discovery_limit;
use crate::matching::Matched;
use crate::stack::groups::Function;
use crate::text::units::nanoseconds_per;
use crate::top::Sort;
use found::FoundMethods;
use moderation::Moderation;
use rperf_model::{Order, Suite, ValueType};
use run::Amount;
use scaling::scales;
use statistics::{Between, Estimate, Observed};
use std::cmp::Reverse;

pub(crate) mod align;

/// How often the rule may err: the share of unchanged rows among those called changed.
pub const ERROR_RATE: f64 = 0.05;

/// Rows with a smaller share of the total, on both sides, are not tested.
pub const LEAST_SHARE: f64 = 0.001;

/// What two runs of the same program may differ by, beyond the noise of sampling: the
/// allowance where there is but one run on a side, which can't show it.
pub const RUN_ALLOWANCE: f64 = 0.02;

/// The verdict about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// There is more of it: a method got slower.
    More,
    /// There is less of it: a method got faster.
    Less,
    /// The difference may be noise.
    Noise,
    /// The profiles don't tell how many samples are behind it, and there are no several
    /// runs.
    Unknown,
}

impl Change {
    /// The verdict in one word, for values of this unit: time is slower or faster, all else more or
    /// less.
    pub fn word(self, unit: &str) -> &'static str {
        let is_time = nanoseconds_per(unit).is_some();
        match (self, is_time) {
            (Change::More, true) => "slower",
            (Change::More, false) => "more",
            (Change::Less, true) => "faster",
            (Change::Less, false) => "less",
            (Change::Noise, _) => "noise",
            (Change::Unknown, _) => "unknown",
        }
    }
}

/// A row that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The method as the target has it, or else as the base has it.
    pub function: Function,
    /// Its path in the base; `None` if it isn't there.
    pub base_path: Option<String>,
    /// How it was found on both sides; `None` if one has it alone.
    pub matched: Option<Matched>,
    /// Its value in the base: the mean of the runs.
    pub base: i64,
    /// Its value in the target.
    pub target: i64,
    /// The verdict about the difference.
    pub change: Change,
    base_estimate: Estimate,
    target_estimate: Estimate,
    /// Whether it is large enough to be tested.
    is_tested: bool,
    /// Whether it is told from noise with all others. Tests that are new, and hooks, aren't: they would make it
    /// easier for the others to count.
    is_compared: bool,
}

impl DiffRow {
    /// Target less base.
    pub fn delta(&self) -> i64 {
        self.target.saturating_sub(self.base)
    }

    /// The difference in percent of the base, if there is a base.
    pub fn percent(&self) -> Option<f64> {
        (self.base != 0).then(|| self.delta() as f64 * 100.0 / self.base.unsigned_abs() as f64)
    }

    fn is_above(&self, share: f64) -> bool {
        self.target as f64 > self.base as f64 * (1.0 + share)
    }

    /// How likely more than `1 + share` times the base would be seen by chance.
    fn p_above(&self, share: f64) -> Option<f64> {
        let base = self.base_estimate.scaled(1.0 + share);
        self.target_estimate.p_greater(&base)
    }
}

fn mean_idle(runs: &[Run]) -> i64 {
    let sum = runs.iter().map(|run| run.idle);
    sum.fold(0, i64::saturating_add) / runs.len().max(1) as i64
}

/// The changes between two groups of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// The type of the values.
    pub value_type: ValueType,
    /// How many runs there are on each side.
    pub runs: [usize; 2],
    /// The time of idle threads that was left out of a run of each side, in the mean.
    pub idle: [i64; 2],
    /// All values together.
    pub total: DiffRow,
    /// The rows that differ, the largest difference first.
    pub rows: Vec<DiffRow>,
    /// How many rows were tested, those without a difference included.
    pub tested: usize,
    /// Whether the values were counted one by one: then no difference is noise.
    pub is_exact: bool,
    /// Whether the rows are tests of a suite.
    pub is_of_tests: bool,
    /// The requests that the values are scaled by, if they are.
    pub per_request: Option<PerRequest>,
}

impl Diff {
    /// Compares runs by the values that `sort` ranks by.
    pub fn of(
        base: &[Run],
        target: &[Run],
        sort: Sort,
        normalize: Normalize,
    ) -> Result<Self, DiffError> {
        let Some(first) = base.first().filter(|_| !target.is_empty()) else {
            return Err(DiffError::NoRuns);
        };
        if let Some(other) = base
            .iter()
            .chain(target)
            .find(|run| run.value_type != first.value_type)
        {
            return Err(DiffError::Types {
                base: first.value_type.to_string(),
                target: other.value_type.to_string(),
            });
        }
        let scales = [
            scales(base, base, normalize)?,
            scales(base, target, normalize)?,
        ];
        let sides = [Side::new(base, &scales[0]), Side::new(target, &scales[1])];
        let mut total = row(Function::default(), &sides, |side| {
            let runs = side.observed(|run| Some(side.runs[run].total));
            Estimate::of_one(&runs, RUN_ALLOWANCE * RUN_ALLOWANCE)
        });
        let found = FoundMethods::of(base, target);
        let least = total.base.unsigned_abs().max(total.target.unsigned_abs()) as f64 * LEAST_SHARE;
        let observed = |side: &Side<'_>, index: usize, method: usize| {
            side.observed(|run| {
                let place = found.row(index, run, method)?;
                Some(side.runs[run].rows[place].amount(sort))
            })
        };
        let mut between = Between::default();
        for &method in &found.order {
            for (index, side) in sides.iter().enumerate() {
                between.add(&observed(side, index, method));
            }
        }
        let between = [0, 1].map(|side: usize| {
            let allowance = RUN_ALLOWANCE * RUN_ALLOWANCE;
            match between.share_squared() {
                Some(learned) if sides[side].runs.len() > 1 => learned,
                Some(learned) => learned.max(allowance),
                None => allowance,
            }
        });
        let is_of_tests = base.iter().chain(target).all(|run| run.is_of_tests);
        let moderation = is_of_tests.then(|| {
            let of_method = |&method: &usize| {
                let values = |index: usize| observed(&sides[index], index, method);
                [values(0), values(1)]
            };
            Moderation::of(found.order.iter().map(of_method), least)
        });
        let rows = found.order.iter().map(|&method| {
            let mut index = 0;
            let mut row = row(found.function(method).clone(), &sides, |side| {
                index += 1;
                let values = observed(side, index - 1, method);
                match &moderation {
                    Some(moderation) => moderation.estimate(&values),
                    None => Estimate::of(&values, between[index - 1]),
                }
            });
            row.base_path = found.base_path(method);
            row.matched = found.matched(method);
            let largest = row.base.unsigned_abs().max(row.target.unsigned_abs());
            row.is_tested = largest as f64 >= least && largest > 0;
            let is_test_of_both = row.matched.is_some() && row.function.name != Suite::HOOKS;
            row.is_compared = !is_of_tests || is_test_of_both;
            row
        });
        let mut rows: Vec<DiffRow> = rows.collect();
        total.is_tested = true;
        let mut runs = base.iter().chain(target);
        let is_exact = normalize == Normalize::No && runs.all(|run| run.is_exact);
        if is_exact {
            rows.iter_mut().for_each(count);
            count(&mut total);
        } else {
            decide(vec![&mut total]);
            let (compared, others): (Vec<_>, Vec<_>) =
                rows.iter_mut().partition(|row| row.is_compared);
            decide(compared);
            decide(others);
        }
        let compared = rows.iter().filter(|row| row.is_compared);
        let tested = compared.filter(|row| row.is_tested).count();
        rows.retain(|row| row.delta() != 0);
        rows.order_by_key(|row| Reverse(row.delta().unsigned_abs()));
        Ok(Self {
            value_type: first.value_type.clone(),
            runs: [base.len(), target.len()],
            idle: [base, target].map(mean_idle),
            total,
            rows,
            tested,
            is_exact,
            is_of_tests,
            per_request: (normalize == Normalize::Requests).then(|| PerRequest::of(base, target)),
        })
    }

    /// The rows with this verdict.
    pub fn with(&self, change: Change) -> impl Iterator<Item = &DiffRow> {
        self.rows.iter().filter(move |row| row.change == change)
    }

    /// Whether there is more of all together by more than `share` of the base, beyond the noise.
    pub fn is_total_above(&self, share: f64) -> bool {
        let is_sure = || self.total.p_above(share).is_some_and(|p| p <= ERROR_RATE);
        self.total.is_above(share) && (self.is_exact || is_sure())
    }

    /// What there is more of by more than `share` of the base, beyond the noise; the
    /// total comes first, without a name.
    pub fn above(&self, share: f64) -> Vec<&DiffRow> {
        let total = self.is_total_above(share).then_some(&self.total);
        total.into_iter().chain(self.rows_above(share)).collect()
    }

    /// The rows of which there is more by more than `share` of the base, beyond the noise; of tests those that both
    /// sides have.
    pub fn rows_above(&self, share: f64) -> Vec<&DiffRow> {
        if self.is_exact {
            let rows = self.rows.iter().filter(|row| row.is_above(share));
            return rows.collect();
        }
        let compared = self.rows.iter().filter(|row| row.is_compared);
        let tested: Vec<_> = compared.filter(|row| row.is_tested).collect();
        let ps = tested.iter().filter_map(|row| row.p_above(share));
        let limit = false_discovery_limit(ps.collect(), self.tested, ERROR_RATE);
        let rows = tested
            .into_iter()
            .filter(|row| row.is_above(share) && row.p_above(share).is_some_and(|p| p <= limit));
        rows.collect()
    }
}

/// Says how a row of exact counts has changed.
fn count(row: &mut DiffRow) {
    row.change = match row.delta() {
        0 => Change::Noise,
        delta if delta > 0 => Change::More,
        _ => Change::Less,
    };
}

/// Says of each row whether it has changed.
fn decide(rows: Vec<&mut DiffRow>) {
    let p = |row: &DiffRow| row.target_estimate.p_different(&row.base_estimate);
    let tested: Vec<f64> = rows
        .iter()
        .filter(|row| row.is_tested)
        .filter_map(|row| p(row))
        .collect();
    let count = tested.len();
    let limit = false_discovery_limit(tested, count, ERROR_RATE);
    for row in rows {
        row.change = match p(row) {
            None => Change::Unknown,
            Some(p) if !row.is_tested || p > limit || row.delta() == 0 => Change::Noise,
            Some(_) if row.delta() > 0 => Change::More,
            Some(_) => Change::Less,
        };
    }
}

/// The runs of one side, each with its scale.
struct Side<'a> {
    runs: &'a [Run],
    scales: &'a [f64],
}

impl<'a> Side<'a> {
    fn new(runs: &'a [Run], scales: &'a [f64]) -> Self {
        Self { runs, scales }
    }

    /// A row's values in the runs, which have numbers.
    fn observed(&self, amount: impl Fn(usize) -> Option<Amount>) -> Vec<Observed> {
        let runs = self.runs.iter().zip(self.scales).enumerate();
        runs.map(|(number, (run, scale))| {
            let none = Amount {
                value: 0,
                variance: run.total.variance.map(|_| 0.0),
                repeated: run.total.repeated.map(|_| 0.0),
            };
            let amount = amount(number).unwrap_or(none);
            // What one run can't tell of a wait, several do.
            let variance = match self.runs.len() {
                1 => amount.variance,
                _ => amount.repeated,
            };
            Observed {
                value: amount.value as f64 * scale,
                by_sampling: variance.map(|it| it * scale * scale),
                sample: (run.mean_sample * scale).powi(2),
            }
        })
        .collect()
    }
}

fn row(
    function: Function,
    sides: &[Side<'_>; 2],
    mut estimate: impl FnMut(&Side<'_>) -> Estimate,
) -> DiffRow {
    let [base_estimate, target_estimate] = sides.each_ref().map(&mut estimate);
    DiffRow {
        function,
        base_path: None,
        matched: None,
        base: base_estimate.mean.round() as i64,
        target: target_estimate.mean.round() as i64,
        change: Change::Unknown,
        base_estimate,
        target_estimate,
        is_tested: false,
        is_compared: true,
    }
}

#[cfg(test)]
mod tests;

//! A run as a comparison needs it: sums by function, each with the variance of its noise. Called by
//! `diff`; any thread.

use crate::calls::shows_calls;
use crate::matching::MethodKey;
use crate::stack::groups::{FrameKey, Function, Groups};
use crate::stack::walk::{Values, walk_summing};
use crate::text::code_paths::CodePaths;
use crate::top::{FrameSums, Sort};
use rperf_model::{Column, OwnColumn, Profile, Requests, Schema, State, ValueType, Weight};
use rustc_hash::FxHashSet;

/// The sums of one run, or of several merged profiles that are one run together.
#[derive(Debug, Clone)]
pub struct Run {
    /// The type of the values.
    pub value_type: ValueType,
    /// How long it took, in ns.
    pub duration_ns: u64,
    /// All samples, if the profile counts them.
    pub samples: Option<i64>,
    /// The time of idle threads that was left out.
    pub idle: i64,
    /// What the profile lacks, and why: a side that lacks it has other names or lines.
    pub missing: Vec<String>,
    /// Whether the values were counted one by one, so that no difference is noise.
    pub is_exact: bool,
    /// Whether it is of a trace.
    pub is_traced: bool,
    /// Whether its rows are the tests of a suite.
    pub is_of_tests: bool,
    pub(super) total: Amount,
    pub(super) rows: Vec<RunRow>,
    pub(super) label_values: usize,
    /// Requests that have ended, as far as filters have left them.
    pub(super) requests: u64,
    /// The mean value of what is counted, a sample or an object; 0 if that isn't known.
    pub(super) mean_sample: f64,
}

/// A value with its noise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Amount {
    pub(super) value: i64,
    /// Its variance by sampling alone; `None` if it is not known how many samples it is
    /// the sum of. Each sample counts as one event, however long it is.
    pub(super) variance: Option<f64>,
    /// The part of that which is by chance if the program does the same again: time in states other than
    /// running is measured, and a sample of it is off by an interval at most.
    pub(super) repeated: Option<f64>,
}

/// A method's own value, and its value with all callees.
#[derive(Debug, Clone)]
pub(super) struct RunRow {
    pub(super) function: Function,
    /// What it is known by in other runs.
    pub(super) key: MethodKey,
    pub(super) own: Amount,
    pub(super) total: Amount,
}

impl RunRow {
    pub(super) fn amount(&self, sort: Sort) -> Amount {
        match sort {
            Sort::SelfValue => self.own,
            Sort::TotalValue => self.total,
        }
    }
}

impl Run {
    /// The sums of `profile` in its default column. `label` is the key of the label
    /// whose values are counted.
    pub fn of(profile: &Profile, label: Option<&str>) -> Self {
        let column = profile.schema.default_column();
        let noise = Noise::of(profile, column);
        let paths = CodePaths::of(profile);
        let groups = Groups::new(profile, FrameKey::Method);
        let mut sums = FrameSums::new(profile, &groups);
        walk_summing(profile, |row| noise.values(row), &mut sums);
        let rows = sums.finish().map(|sum| {
            let function = groups.function(sum.group);
            RunRow {
                key: MethodKey::of(&function, &paths),
                function,
                own: noise.amount(sum.own),
                total: noise.amount(sum.total),
            }
        });
        let mut total = [0; 3];
        for row in profile.weights.iter() {
            crate::stack::walk::add(&mut total, noise.values(row));
        }
        Self {
            value_type: profile.schema.default_type().clone(),
            duration_ns: profile.meta.duration_ns,
            samples: noise.samples.map(|samples| profile.sum(samples)),
            idle: 0,
            missing: profile.meta.missing.clone(),
            is_exact: shows_calls(profile),
            is_traced: profile.schema.is_traced(),
            is_of_tests: false,
            total: noise.amount(total),
            rows: rows.collect(),
            label_values: label.map_or(0, |key| label_values(profile, key)),
            requests: requests(profile),
            mean_sample: noise.mean_sample,
        }
    }

    /// All values together.
    pub fn total(&self) -> i64 {
        self.total.value
    }
}

/// The noise of sampling. A value is the sum of as many samples as it has; how many come
/// varies as the count itself (they are taken independently of each other), so the
/// variance of a row is count x (value / count)².
struct Noise {
    column: Column,
    samples: Option<Column>,
    /// The mean value of a sample, in which variances are counted meanwhile.
    unit: f64,
    mean_sample: f64,
    /// The values are of objects, each of which was counted, so that sampling has no part in them.
    is_counted: bool,
    /// The values are of objects, which were sampled by their bytes.
    sampled: Option<SampledObjects>,
    /// How many collections the values are the time of, if they are; 0 if that isn't known.
    collections: Option<u64>,
    /// The mean interval of sampling; infinite if it isn't known, or the values are no times.
    interval: f64,
}

/// The column of objects' bytes, and the bytes that a sample of them stands for at most.
#[derive(Clone, Copy)]
struct SampledObjects {
    bytes: Column,
    each: f64,
}

impl SampledObjects {
    fn of(profile: &Profile, bytes: Column) -> Option<Self> {
        Some(Self {
            bytes,
            each: profile.meta.sampled_objects()?.0 as f64,
        })
    }

    /// What one sample stands for in `column`, of such a value and bytes: what has no bytes has no samples.
    fn each_in(&self, column: Column, value: i64, bytes: i64) -> f64 {
        match column == self.bytes {
            true => self.each,
            false if bytes <= 0 => 0.0,
            false => self.each * value as f64 / bytes as f64,
        }
    }
}

/// Parts of a sample's square that are counted: variances are summed as whole numbers.
const PARTS: f64 = 1024.0;

impl Noise {
    fn of(profile: &Profile, column: Column) -> Self {
        let schema: &Schema = &profile.schema;
        let samples = schema
            .samples()
            .filter(|_| profile.sample_count().is_some());
        let count = samples.map_or(0, |samples| profile.sum(samples));
        let objects = objects(schema, column);
        let events = objects.map_or(count, |[objects, _]| profile.sum(objects));
        let sampled = objects.and_then(|[_, bytes]| SampledObjects::of(profile, bytes));
        let mean = match &sampled {
            Some(it) => it.each_in(column, profile.sum(column), profile.sum(it.bytes)),
            None => profile.sum(column) as f64 / events.max(1) as f64,
        };
        let is_time = schema.types()[column.0].unit == "nanoseconds";
        let interval = match profile.meta.frequency {
            frequency @ 1.. if is_time => 1e9 / frequency as f64,
            _ => f64::INFINITY,
        };
        // Where nothing is left, no sample is: that is known.
        let is_empty = profile.weights.is_empty();
        Self {
            column,
            samples: samples.filter(|_| count > 0 || is_empty),
            unit: mean.abs().max(1.0),
            mean_sample: if events > 0 { mean } else { 0.0 },
            is_counted: objects.is_some() && sampled.is_none(),
            sampled,
            collections: collections(profile, column),
            interval,
        }
    }

    /// A row's value and variances.
    fn values(&self, row: Weight<'_>) -> Values<3> {
        let value = row.value(self.column);
        if let Some(sampled) = &self.sampled {
            let each = sampled.each_in(self.column, value, row.value(sampled.bytes));
            let variance = value as f64 * each / self.unit.powi(2) * PARTS;
            return [value, variance.round() as i64, variance.round() as i64];
        }
        let Some(samples) = self.samples.filter(|_| !self.is_counted) else {
            return [value, 0, 0];
        };
        let count = row.value(samples).max(1) as f64;
        let each = value.unsigned_abs() as f64 / count;
        let chance = match row.key.state {
            State::Running => each,
            _ => each.min(self.interval),
        };
        let variance = |each: f64| ((each / self.unit).powi(2) * count * PARTS).round() as i64;
        [value, variance(each), variance(chance)]
    }

    fn amount(&self, [value, variance, repeated]: Values<3>) -> Amount {
        let [variance, repeated] = [variance, repeated].map(|parts| {
            let variance = parts as f64 / PARTS * self.unit * self.unit;
            let is_known = self.is_counted || self.sampled.is_some() || self.samples.is_some();
            let by_collections = match self.collections {
                None => 0.0,
                Some(0) => return None,
                // Each may take twice as long, or not come at all: what has a part in them has all of them in it.
                Some(count) => (value as f64).powi(2) / count as f64,
            };
            is_known.then_some(variance + by_collections)
        });
        Amount {
            value,
            variance,
            repeated,
        }
    }
}

/// How many collections a profile has, if the values of `column` are what these took.
fn collections(profile: &Profile, column: Column) -> Option<u64> {
    let own = profile.schema.types()[column.0].own();
    let counts = || profile.collections.iter().map(|it| it.1.count);
    (own == Some(OwnColumn::GcCost)).then(|| counts().fold(0, u64::saturating_add))
}

/// The columns with the numbers of objects and their bytes, if `column` is about these. Only rperf's own
/// profiles have them as we know them, and these have a time, too.
fn objects(schema: &Schema, column: Column) -> Option<[Column; 2]> {
    let has = |column| schema.find_own(column).is_some();
    let own = schema.types()[column.0]
        .own()
        .filter(|it| it.is_of_objects())?;
    let is_ours = has(OwnColumn::Cpu) || has(OwnColumn::Wall);
    let pair = match own.is_level() {
        true => [OwnColumn::ObjectsInUse, OwnColumn::BytesInUse],
        false => [OwnColumn::Objects, OwnColumn::Bytes],
    };
    let [objects, bytes] = pair.map(|column| schema.find_own(column));
    is_ours.then_some([objects?, bytes?])
}

/// How many requests there are, or are left by filters by tags.
fn requests(profile: &Profile) -> u64 {
    let counts = profile.requests.iter().flat_map(Requests::counts);
    counts.fold(0, u64::saturating_add)
}

/// How many different values the label with this key has.
fn label_values(profile: &Profile, key: &str) -> usize {
    let used: FxHashSet<_> = profile.weights.iter().map(|row| row.key.labels).collect();
    let values: FxHashSet<_> = used
        .into_iter()
        .filter_map(|set| crate::rows::tags::label(profile, set, key))
        .collect();
    values.len()
}

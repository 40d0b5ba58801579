//! Growth of an amount that was looked at again and again: how much in an hour, how sure that is, and whether it
//! lasted. Used by `rperf leak`; pure, any thread.

use crate::chance::{false_discovery_limit, one_sided};

/// Nanoseconds of an hour.
const HOUR: f64 = 3.6e12;

/// Looks that are needed to say anything.
pub const LEAST_LOOKS: usize = 3;

/// From so many looks on, growth has to last over three parts of the time, and before over two.
const LOOKS_OF_THREE_PARTS: usize = 7;

/// The part of the whole growth, in an hour, that each part of the time needs at least.
const LEAST_OF_PART: f64 = 0.5;

/// The part of the whole growth by which the amount may fall in between.
const MOST_FALL: f64 = 0.5;

/// The part of the rows said to grow that may be wrong, if looks are independent. It is small because looks that are
/// alike make it larger.
const ERROR_RATE: f64 = 0.005;

/// The part of the rows said to have risen at some look, or grown for a part of the time, that may be wrong.
const ERROR_RATE_OF_STEPS: f64 = 0.001;

/// An amount at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// When, in ns.
    pub time_ns: u64,
    /// How much there was.
    pub amount: f64,
}

/// What an amount is made of, and which growth of it counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measure {
    /// What a single sample stands for, if the amount is estimated by samples; 0 if it was counted.
    pub sample: f64,
    /// What a single one of the things counts, of which there are only whole ones; 0 if it isn't known.
    pub grain: f64,
    /// Growth of less than this over the whole time is none.
    pub least: f64,
}

/// The verdict about an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The amount grows, and has done so all the time.
    Grows,
    /// There is more than in the beginning, but it didn't grow all the time, or fell again.
    GrewOnce,
    /// Nothing has grown beyond the error.
    Steady,
    /// There are too few looks.
    Unknown,
}

/// What is known of the growth of an amount.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// By how much it grew in an hour: the median of the slopes between all pairs of looks (Theil and Sen).
    pub per_hour: f64,
    /// The error of that: twice as much has it on either side in 95 of 100 cases.
    pub error: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// How likely such a slope is by chance; `None` if it can't be growth that counts.
    by_chance: Option<f64>,
    /// How likely it is by chance that so much more came after some look than was there before; `None` if it can't be
    /// growth that counts.
    late_by_chance: Option<f64>,
}

impl Growth {
    /// The growth of what was seen, in the order of time, of an amount that is looked at alone.
    pub fn of(seen: &[Seen], measure: Measure) -> Self {
        let mut one = [Self::untold(seen, measure)];
        tell(&mut one);
        let [one] = one;
        one
    }

    /// The growth of amounts that were seen at the same looks. The more there are, the surer each has to be, because
    /// noise makes some of many look as if they grew.
    pub fn of_all<'a>(all: impl Iterator<Item = (&'a [Seen], Measure)>) -> Vec<Self> {
        let mut all: Vec<Self> = all
            .map(|(seen, measure)| Self::untold(seen, measure))
            .collect();
        tell(&mut all);
        all
    }

    /// The growth, with the verdict that it would have if chance were out of question.
    fn untold(seen: &[Seen], measure: Measure) -> Self {
        let unknown = Growth {
            per_hour: 0.0,
            error: 0.0,
            verdict: Verdict::Unknown,
            by_chance: None,
            late_by_chance: None,
        };
        let [first, .., last] = seen else {
            return unknown;
        };
        let hours = |it: &Seen| it.time_ns.saturating_sub(first.time_ns) as f64 / HOUR;
        let points: Vec<[f64; 2]> = seen.iter().map(|it| [hours(it), it.amount]).collect();
        let time = hours(last);
        if points.len() < LEAST_LOOKS || time <= 0.0 {
            return unknown;
        }
        let per_hour = median_slope(&points);
        let fit = Fit::of(&points, per_hour, measure.grain);
        let by_samples = by_samples(measure.sample, last.amount - first.amount, time);
        let grown = per_hour * time;
        let counts = grown > 0.0 && grown >= measure.least;
        let lasts = parts(&points).all(|part| slope(part) >= LEAST_OF_PART * per_hour);
        let verdict = match counts {
            true if lasts && largest_fall(&points) <= MOST_FALL * grown => Verdict::Grows,
            true => Verdict::GrewOnce,
            false => Verdict::Steady,
        };
        let may_grow = range(&points) >= measure.least.max(f64::MIN_POSITIVE);
        Growth {
            per_hour,
            error: fit.error().hypot(by_samples),
            verdict,
            by_chance: may_grow.then(|| fit.by_chance(per_hour, by_samples)),
            late_by_chance: may_grow.then(|| late_by_chance(&points, measure)),
        }
    }
}

/// Takes back the verdicts that chance explains. Of all that may grow at most a small part is wrong, after Benjamini
/// and Hochberg.
fn tell(all: &mut [Growth]) {
    let limit = |of: fn(&Growth) -> Option<f64>, rate| {
        let tested: Vec<f64> = all.iter().filter_map(of).collect();
        let count = tested.len();
        false_discovery_limit(tested, count, rate)
    };
    let slopes = limit(|it| it.by_chance, ERROR_RATE);
    let steps = limit(|it| it.late_by_chance, ERROR_RATE_OF_STEPS);
    for it in all {
        let is_within = |p: Option<f64>, limit| p.is_some_and(|p| p <= limit);
        let is_sure = is_within(it.by_chance, slopes);
        it.verdict = match it.verdict {
            Verdict::Grows if is_sure && it.per_hour > 2.0 * it.error => Verdict::Grows,
            Verdict::GrewOnce if is_sure && it.per_hour > 2.0 * it.error => Verdict::GrewOnce,
            Verdict::Unknown => Verdict::Unknown,
            _ if is_within(it.late_by_chance, steps) => Verdict::GrewOnce,
            _ => Verdict::Steady,
        };
    }
}

/// The error of the growth by the chance of sampling: each of the samples that came is one event.
fn by_samples(one: f64, growth: f64, time: f64) -> f64 {
    match one > 0.0 {
        true => one * (growth.abs() / one + 1.0).sqrt() / time,
        false => 0.0,
    }
}

fn median_slope(points: &[[f64; 2]]) -> f64 {
    let pairs = points.iter().enumerate();
    let slopes = pairs.flat_map(|(place, [time, amount])| {
        let later = points[place + 1..].iter().filter(move |it| it[0] > *time);
        later.map(move |it| (it[1] - amount) / (it[0] - time))
    });
    median(slopes.collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    if all.is_empty() {
        return 0.0;
    }
    all.sort_unstable_by(f64::total_cmp);
    let middle = all.len() / 2;
    match all.len() % 2 {
        0 => f64::midpoint(all[middle - 1], all[middle]),
        _ => all[middle],
    }
}

/// The part of the square of a grain by which whole numbers of grains scatter about what they stand for.
const GRAIN: f64 = 1.0 / 12.0;

/// How well points fit a line.
struct Fit {
    /// The variance of its slope.
    variance: f64,
    /// Its degrees of freedom.
    freedom: usize,
}

impl Fit {
    fn of(points: &[[f64; 2]], slope: f64, grain: f64) -> Self {
        let level = median(points.iter().map(|it| it[1] - slope * it[0]).collect());
        let rests = points.iter().map(|it| it[1] - level - slope * it[0]);
        let rests: Vec<f64> = rests.collect();
        let freedom = points.len() - 2;
        let mean = points.iter().map(|it| it[0]).sum::<f64>() / points.len() as f64;
        let width: f64 = points.iter().map(|it| (it[0] - mean).powi(2)).sum();
        let fewer = fewer(&rests);
        let scatter = squares(&rests) / freedom as f64 + GRAIN * grain * grain;
        Fit {
            variance: scatter / width * fewer,
            freedom,
        }
    }

    fn error(&self) -> f64 {
        self.variance.sqrt() * quantile(self.freedom) / 2.0
    }

    /// How likely the slope is by chance, with this further error of it.
    fn by_chance(&self, slope: f64, by_samples: f64) -> f64 {
        let variance = self.variance + by_samples * by_samples;
        p_of(slope, variance, self.variance, self.freedom as f64)
    }
}

/// How likely a difference is by chance, if a part of its variance is known by so many degrees of freedom.
fn p_of(difference: f64, variance: f64, part: f64, freedom: f64) -> f64 {
    if difference <= 0.0 {
        return 1.0;
    }
    if variance <= 0.0 {
        return 0.0;
    }
    let freedom = freedom * (variance / part).powi(2);
    one_sided(difference / variance.sqrt(), freedom)
}

fn squares(rests: &[f64]) -> f64 {
    rests.iter().map(|it| it * it).sum()
}

/// From so many looks on, it can be told how much alike those are that follow each other.
const LOOKS_THAT_TELL_ALIKE: usize = 5;

/// How much alike looks that follow each other are taken to be at least, because few looks show less than it is.
const LEAST_ALIKE: f64 = 0.5;

/// How much at most.
const MOST_ALIKE: f64 = 0.9;

/// How many times fewer independent points would tell as much. What is near in time scatters alike; of few points
/// that shows less than it is, because the line follows them.
fn fewer(rests: &[f64]) -> f64 {
    let squares = squares(rests);
    if squares <= 0.0 {
        return 1.0;
    }
    let alike: f64 = rests.windows(2).map(|it| it[0] * it[1]).sum();
    let (alike, count) = (alike / squares, rests.len() as f64);
    if rests.len() < LOOKS_THAT_TELL_ALIKE {
        let alike = alike.clamp(0.0, MOST_ALIKE);
        return (1.0 + alike) / (1.0 - alike);
    }
    let alike = (count * alike + 1.0) / (count - 3.0) + 1.0 / count.sqrt();
    let alike = alike.clamp(LEAST_ALIKE, MOST_ALIKE);
    (1.0 + alike) / (1.0 - alike)
}

/// How likely it is by chance that an amount rose at some look, or grew from some look on or up to it, by so much.
/// Each look may be it.
fn late_by_chance(points: &[[f64; 2]], measure: Measure) -> f64 {
    let count = points.len();
    let shape = |of: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let times = points.iter().map(|it| of(it[0]));
        times.collect()
    };
    let inner = &points[1..count - 1];
    let steps = points[1..]
        .iter()
        .map(|at| shape(&|it| f64::from(u8::from(it >= at[0]))));
    let late = inner.iter().map(|at| shape(&|it| (it - at[0]).max(0.0)));
    let early = inner.iter().map(|at| shape(&|it| it.min(at[0])));
    let shapes: Vec<Vec<f64>> = steps.chain(late).chain(early).collect();
    let of_each = shapes.iter().map(|shape| {
        let shaped = shape.iter().zip(points).map(|it| [*it.0, it.1[1]]);
        let shaped: Vec<[f64; 2]> = shaped.collect();
        let (rise, way) = (slope(&shaped), shape[count - 1] - shape[0]);
        if way <= 0.0 || rise * way < measure.least {
            return 1.0;
        }
        let by_samples = by_samples(measure.sample, rise * way, way);
        Fit::of(&shaped, rise, measure.grain).by_chance(rise, by_samples)
    });
    of_each.fold(1.0, f64::min) * shapes.len() as f64
}

/// By how much the largest amount is above the least one.
fn range(points: &[[f64; 2]]) -> f64 {
    let amounts = points.iter().map(|it| it[1]);
    let most = amounts.clone().fold(f64::NEG_INFINITY, f64::max);
    most - amounts.fold(f64::INFINITY, f64::min)
}

/// How many errors have 95.4 of 100 cases between them, on either side: those of Student's distribution.
fn quantile(freedom: usize) -> f64 {
    const OF_FEW: [f64; 10] = [13.97, 4.53, 3.31, 2.87, 2.65, 2.52, 2.43, 2.37, 2.32, 2.28];
    match OF_FEW.get(freedom.saturating_sub(1)) {
        Some(quantile) => *quantile,
        // The first terms of its expansion by 1 / freedom.
        None => 2.0 + 2.5 / freedom as f64 + 4.0 / (freedom * freedom) as f64,
    }
}

/// The parts of the time in each of which growth has to last. The looks between two are in both.
fn parts(points: &[[f64; 2]]) -> impl Iterator<Item = &[[f64; 2]]> {
    let count = if points.len() < LOOKS_OF_THREE_PARTS {
        2
    } else {
        3
    };
    let end = points.len() - 1;
    (0..count).map(move |part| &points[part * end / count..=(part + 1) * end / count])
}

/// The slope of the line with the least squares.
fn slope(points: &[[f64; 2]]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: usize| points.iter().map(|it| it[of]).sum::<f64>() / count;
    let [time, amount] = [mean(0), mean(1)];
    let products = points.iter().map(|it| (it[0] - time) * (it[1] - amount));
    let width: f64 = points.iter().map(|it| (it[0] - time).powi(2)).sum();
    match width > 0.0 {
        true => products.sum::<f64>() / width,
        false => 0.0,
    }
}

/// By how much it fell at most from an earlier look to a later one.
fn largest_fall(points: &[[f64; 2]]) -> f64 {
    let mut most = f64::NEG_INFINITY;
    let falls = points.iter().map(|it| {
        most = most.max(it[1]);
        most - it[1]
    });
    falls.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;

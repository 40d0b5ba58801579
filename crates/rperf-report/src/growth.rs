//! Growth of an amount that was looked at again and again: how much in an hour, how sure that is, and whether it
//! lasted. Used by `rperf leak`; pure, any thread.

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

/// An amount at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// When, in ns.
    pub time_ns: u64,
    /// How much there was.
    pub amount: f64,
}

/// The verdict about an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It grows, and has done so all the time.
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
}

impl Growth {
    /// The growth of what was seen, in the order of time. `one` is what a single one of the things counts that the
    /// amount is estimated from, such as the bytes that a sample stands for; 0 if it was counted. Growth of
    /// less than `least` over the whole time is none.
    pub fn of(seen: &[Seen], one: f64, least: f64) -> Self {
        let unknown = Growth {
            per_hour: 0.0,
            error: 0.0,
            verdict: Verdict::Unknown,
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
        let by_chance = chance(one, last.amount - first.amount, time);
        let error = error_of(&points, per_hour).hypot(by_chance);
        let grown = per_hour * time;
        let is_sure = per_hour > 2.0 * error && grown >= least && grown > 0.0;
        let lasts = parts(&points).all(|part| slope(part) >= LEAST_OF_PART * per_hour);
        let verdict = match is_sure {
            true if lasts && largest_fall(&points) <= MOST_FALL * grown => Verdict::Grows,
            true => Verdict::GrewOnce,
            false => Verdict::Steady,
        };
        Growth {
            per_hour,
            error,
            verdict,
        }
    }

    /// In how many hours it reaches `limit` from `now` on; `None` if it doesn't grow.
    pub fn hours_to(&self, limit: f64, now: f64) -> Option<f64> {
        let grows = self.verdict == Verdict::Grows && self.per_hour > 0.0;
        grows.then(|| ((limit - now) / self.per_hour).max(0.0))
    }
}

/// The error of the growth by the chance of sampling: each of the samples that came is one event.
fn chance(one: f64, growth: f64, time: f64) -> f64 {
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

/// The error of a slope by the scatter of the points about the line. What is near in time scatters alike, so
/// that the points tell less than as many independent ones would.
fn error_of(points: &[[f64; 2]], slope: f64) -> f64 {
    let level = median(points.iter().map(|it| it[1] - slope * it[0]).collect());
    let rest = |it: &[f64; 2]| it[1] - level - slope * it[0];
    let rests: Vec<f64> = points.iter().map(rest).collect();
    let squares: f64 = rests.iter().map(|it| it * it).sum();
    let freedom = points.len() - 2;
    let mean = points.iter().map(|it| it[0]).sum::<f64>() / points.len() as f64;
    let width: f64 = points.iter().map(|it| (it[0] - mean).powi(2)).sum();
    let alike: f64 = rests.windows(2).map(|it| it[0] * it[1]).sum();
    let alike = if squares > 0.0 { alike / squares } else { 0.0 };
    let alike = alike.clamp(0.0, 0.9);
    let variance = squares / freedom as f64 / width * (1.0 + alike) / (1.0 - alike);
    variance.sqrt() * quantile(freedom) / 2.0
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

//! The file of `rperf leak`, as JSON: what of a program grew, by several looks at it. Made, written and read by the
//! command; any thread.

use rperf_model::Order;
use rperf_report::growth::{Growth, LEAST_LOOKS, Measure, Seen, Verdict};
use rperf_report::in_use::{InUse, InUseSite, SitesInUse};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the form.
const VERSION: u32 = 1;

/// What says that a file is one of these.
const KIND: &str = "rperf leak";

/// The part of all bytes by which a class has to grow at least.
const LEAST_PART: f64 = 1e-4;

/// The bytes by which a class has to grow at least.
const LEAST_BYTES: f64 = 1024.0;

/// The part of the RSS by which it has to grow at least.
const LEAST_PART_OF_RSS: f64 = 1e-3;

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LeakFile {
    /// The version of this form; later ones only add to it.
    pub version: u32,
    /// The kind of file, by which it is told from others.
    pub kind: String,
    /// The process.
    pub pid: i32,
    /// What it calls itself.
    pub program: String,
    /// Its version of Ruby.
    pub ruby: String,
    /// Bytes of RSS that it may have, if that is known.
    pub limit_bytes: Option<u64>,
    /// Whether that is the limit of its control group, and not one that was given.
    pub limit_is_of_group: bool,
    /// Bytes that all processes of the group had at the last look, if that is known.
    #[serde(default)]
    pub group_used_bytes: Option<u64>,
    /// The looks.
    pub looks: Vec<LookRow>,
    /// Looks that failed.
    pub failed: u64,
    /// The growth of the RSS.
    pub rss: Option<Grown>,
    /// The growth of classes, by the objects that something refers to.
    pub classes: GrowthTable<ClassGrowth>,
    /// The growth of sites, if a session measured heap.
    pub sites: Option<SitesGrowth>,
}

/// A look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookRow {
    /// When, in ns since 1970.
    pub time_ns: u64,
    /// The RSS, if it is known.
    pub rss_bytes: Option<u64>,
    /// The objects that something refers to.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// By how much something grew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Grown {
    /// In an hour.
    pub per_hour: f64,
    /// The error of that.
    pub error: f64,
    /// The verdict.
    pub verdict: GrowthVerdict,
}

/// The verdict about a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrowthVerdict {
    /// The amount grows.
    Grows,
    /// The amount grew, but not all the time.
    GrewOnce,
    /// The amount doesn't grow.
    Steady,
    /// There are too few looks.
    #[default]
    #[serde(other)]
    Unknown,
}

impl From<Growth> for Grown {
    fn from(growth: Growth) -> Self {
        Grown {
            per_hour: growth.per_hour,
            error: growth.error,
            verdict: match growth.verdict {
                Verdict::Grows => GrowthVerdict::Grows,
                Verdict::GrewOnce => GrowthVerdict::GrewOnce,
                Verdict::Steady => GrowthVerdict::Steady,
                Verdict::Unknown => GrowthVerdict::Unknown,
            },
        }
    }
}

impl Grown {
    /// Whether it grows.
    pub fn grows(&self) -> bool {
        self.verdict == GrowthVerdict::Grows
    }

    /// In how many hours it reaches `limit` from `now` on: at its rate, and with twice the error more and less;
    /// `None` if it doesn't grow.
    pub fn hours_to(&self, limit: u64, now: u64) -> Option<[f64; 3]> {
        let way = limit.saturating_sub(now) as f64;
        let rates = [0.0, 2.0, -2.0].map(|errors| self.per_hour + errors * self.error);
        let all_grow = rates.iter().all(|it| *it > 0.0);
        (self.grows() && all_grow).then(|| rates.map(|it| way / it))
    }
}

/// Rows that grow, those that grew once, and how many others there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GrowthTable<T> {
    /// Rows that have grown: first what grows, the fastest first.
    pub rows: Vec<T>,
    /// How many others don't grow.
    pub steady: u64,
    /// The number of others of which too little was seen.
    #[serde(default)]
    pub unknown: u64,
}

/// The growth of an amount of objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Amount {
    /// By how many bytes.
    pub bytes: Grown,
    /// By how many objects.
    pub objects: Grown,
    /// The bytes at each look.
    pub bytes_seen: Vec<u64>,
    /// The objects at each look.
    pub objects_seen: Vec<u64>,
}

/// The growth of a class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassGrowth {
    /// What it is called.
    pub name: String,
    /// By how much.
    #[serde(flatten)]
    pub amount: Amount,
}

/// The growth of a site.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteGrowth {
    /// The method.
    pub method: String,
    /// Its path.
    pub path: String,
    /// The line; 0 if it isn't known.
    pub line: u32,
    /// The class of the objects.
    pub class: String,
    /// By how much.
    #[serde(flatten)]
    pub amount: Amount,
}

/// The growth of sites in one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SitesGrowth {
    /// The bytes that a sample stands for.
    pub sample_bytes: u64,
    /// When they were looked at, in ns since 1970.
    pub looks: Vec<u64>,
    /// The sites.
    #[serde(flatten)]
    pub table: GrowthTable<SiteGrowth>,
}

/// What was seen at a look.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// When, in ns since 1970.
    pub time_ns: u64,
    /// The RSS, if it is known.
    pub rss_bytes: Option<u64>,
    /// The objects of each class that something refers to.
    pub classes: Vec<(String, InUse)>,
    /// All of them, those of other classes, too.
    pub total: InUse,
    /// The sites, if a session measures heap.
    pub sites: Option<SitesInUse>,
}

/// Why something is no such file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoLeakFile {
    /// A file of another kind.
    #[error("it is no file of 'rperf leak -o'")]
    Other,
    /// A file of a later version.
    #[error("it was written by a later version of rperf")]
    Later,
}

/// A row of amounts, at each look.
type Series = Vec<InUse>;

impl LeakFile {
    /// The growth over these looks, in the order of time.
    pub fn of(looks: &[Look]) -> Self {
        let rows: Vec<LookRow> = looks.iter().map(Look::row).collect();
        let with_rss = rows
            .iter()
            .filter_map(|it| Some((it.time_ns, it.rss_bytes?)));
        let rss: Vec<Seen> = with_rss
            .map(|(time_ns, bytes)| seen(time_ns, bytes))
            .collect();
        let least = rss.first().map_or(0.0, |it| it.amount * LEAST_PART_OF_RSS);
        let measure = Measure {
            least,
            ..Measure::default()
        };
        LeakFile {
            version: VERSION,
            kind: KIND.into(),
            rss: (rss.len() >= LEAST_LOOKS).then(|| Growth::of(&rss, measure).into()),
            classes: classes(looks, &rows),
            sites: sites(looks),
            looks: rows,
            ..LeakFile::default()
        }
    }

    /// The time between the first look and the last one, in ns.
    pub fn time_ns(&self) -> u64 {
        let time = |look: Option<&LookRow>| look.map_or(0, |it| it.time_ns);
        time(self.looks.last()).saturating_sub(time(self.looks.first()))
    }

    /// The JSON, with a line's end.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so nothing can fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, NoLeakFile> {
        let file: LeakFile = serde_json::from_slice(bytes).map_err(|_| NoLeakFile::Other)?;
        match (&*file.kind, file.version) {
            (KIND, VERSION) => Ok(file),
            (KIND, _) => Err(NoLeakFile::Later),
            _ => Err(NoLeakFile::Other),
        }
    }
}

impl Look {
    fn row(&self) -> LookRow {
        LookRow {
            time_ns: self.time_ns,
            rss_bytes: self.rss_bytes,
            objects: self.total.objects,
            bytes: self.total.bytes,
        }
    }
}

fn seen(time_ns: u64, amount: u64) -> Seen {
    Seen {
        time_ns,
        amount: amount as f64,
    }
}

fn classes(looks: &[Look], rows: &[LookRow]) -> GrowthTable<ClassGrowth> {
    let times: Vec<u64> = looks.iter().map(|it| it.time_ns).collect();
    let mut series: BTreeMap<&str, Series> = BTreeMap::new();
    for (number, look) in looks.iter().enumerate() {
        for (name, amount) in &look.classes {
            let all = series.entry(name).or_default();
            all.resize(looks.len(), InUse::default());
            all[number] = *amount;
        }
    }
    let all = rows.first().map_or(0, |it| it.bytes) as f64;
    let least = (all * LEAST_PART).max(LEAST_BYTES);
    let (names, series): (Vec<&str>, Vec<Series>) = series.into_iter().unzip();
    let amounts = Amount::of_all(&times, &series, None, least);
    let rows = names.into_iter().zip(amounts);
    let rows = rows.map(|(name, amount)| ClassGrowth {
        name: name.into(),
        amount,
    });
    GrowthTable::of(rows.collect(), |it| &it.amount)
}

/// The sites of the last session that was seen, if there are enough looks at it.
fn sites(looks: &[Look]) -> Option<SitesGrowth> {
    let last = looks.iter().rev().find_map(|it| it.sites.as_ref())?;
    let with_sites = looks
        .iter()
        .filter_map(|it| Some((it.time_ns, it.sites.as_ref()?)));
    let looks: Vec<_> = with_sites
        .filter(|it| it.1.session == last.session)
        .collect();
    let times: Vec<u64> = looks.iter().map(|it| it.0).collect();
    let all: BTreeSet<&InUseSite> = looks.iter().flat_map(|it| it.1.sites.keys()).collect();
    let series = all.iter().map(|site| {
        let series = looks.iter().map(|it| it.1.sites.get(site).copied());
        series.map(Option::unwrap_or_default).collect()
    });
    let series: Vec<Series> = series.collect();
    let amounts = Amount::of_all(&times, &series, Some(last.each), LEAST_BYTES);
    let rows = all.into_iter().zip(amounts);
    let rows = rows.map(|(site, amount)| SiteGrowth {
        method: site.method.clone(),
        path: site.path.clone(),
        line: site.line,
        class: site.class.clone(),
        amount,
    });
    let rows: Vec<_> = rows.collect();
    Some(SitesGrowth {
        sample_bytes: last.each,
        looks: times,
        table: GrowthTable::of(rows, |it| &it.amount),
    })
}

impl Amount {
    /// Amounts of all rows, which are told from noise together. `each`: the bytes that a sample stands for, if they
    /// were sampled.
    fn of_all(times: &[u64], all: &[Series], each: Option<u64>, least: f64) -> Vec<Self> {
        let of = |amount: fn(&InUse) -> u64, measure: &dyn Fn(f64) -> Measure| {
            let rows = all.iter().map(|series| {
                let amounts = times.iter().zip(series);
                let seen: Vec<Seen> = amounts.map(|it| seen(*it.0, amount(it.1))).collect();
                (seen, measure(bytes_of_one(series)))
            });
            let rows: Vec<(Vec<Seen>, Measure)> = rows.collect();
            Growth::of_all(rows.iter().map(|it| (&*it.0, it.1)))
        };
        let sample = each.unwrap_or(0) as f64;
        let is_counted = if each.is_none() { 1.0 } else { 0.0 };
        let bytes = of(|it| it.bytes, &|bytes_of_one| Measure {
            sample,
            grain: is_counted * bytes_of_one,
            least,
        });
        let objects = of(|it| it.objects, &|bytes_of_one| Measure {
            sample: sample / bytes_of_one.max(1.0),
            grain: is_counted,
            least: 1.0,
        });
        let growths = all.iter().zip(bytes).zip(objects);
        let amounts = growths.map(|((series, bytes), objects)| Amount {
            bytes: bytes.into(),
            objects: objects.into(),
            bytes_seen: series.iter().map(|it| it.bytes).collect(),
            objects_seen: series.iter().map(|it| it.objects).collect(),
        });
        amounts.collect()
    }
}

/// The mean bytes of one of its objects.
fn bytes_of_one(series: &Series) -> f64 {
    let sum = |of: fn(&InUse) -> u64| series.iter().map(of).fold(0, u64::saturating_add);
    sum(|it| it.bytes) as f64 / sum(|it| it.objects).max(1) as f64
}

impl<T> GrowthTable<T> {
    fn of(rows: Vec<T>, amount: impl Fn(&T) -> &Amount) -> Self {
        let all = rows.len();
        let of = |verdict| {
            let rows = rows.iter();
            rows.filter(|it| amount(it).bytes.verdict == verdict)
                .count()
        };
        let unknown = of(GrowthVerdict::Unknown);
        let has_grown = |row: &T| {
            let verdict = amount(row).bytes.verdict;
            matches!(verdict, GrowthVerdict::Grows | GrowthVerdict::GrewOnce)
        };
        let mut rows: Vec<T> = rows.into_iter().filter(has_grown).collect();
        rows.order_by(|one, other| {
            let key = |row: &T| (amount(row).bytes.grows(), amount(row).bytes.per_hour);
            let ((grows, one), (others, other)) = (key(one), key(other));
            others.cmp(&grows).then(other.total_cmp(&one))
        });
        GrowthTable {
            steady: (all - rows.len() - unknown) as u64,
            unknown: unknown as u64,
            rows,
        }
    }
}

#[cfg(test)]
mod tests;

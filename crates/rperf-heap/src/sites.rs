//! Where the objects were made that are there still, as a session in the program has sampled them, and how
//! they are held.
//!
//! A sample stands for `w` objects, the reciprocal of the probability with which it was drawn, and so for `w`
//! times the bytes that its object has by now, in its slot and from malloc. The variance of such a sum is
//! that of w (w - 1) bytes² for each sample. The objects of a class that something refers to are counted:
//! where its rows would have more than that together, each is smaller, those the most whose errors are the
//! largest parts of them. A small slot may have much from malloc, and one such sample stands for many.

use crate::file::{CodePlace, SitePath, SiteRow, Sites, Sum};
use crate::graph::NONE;
use crate::holders::Known;
use rperf_protocol::heap::sampled::{Place, Sample, Site};
use rustc_hash::FxHashMap;

/// Rows that are kept.
const MOST: usize = 1000;

/// Paths of a row that are kept.
const PATHS: usize = 3;

/// Where no power is enough, as without errors, all parts are the same from here on.
const MOST_POWER: f64 = 1e9;

/// What a row is of: its site, and the name of its class.
type Key<'a> = (Option<Site>, &'a str);

/// What a row has.
#[derive(Default)]
struct Row<'a> {
    samples: Vec<&'a Sample>,
    estimate: Estimate,
}

/// What samples stand for.
#[derive(Default, Clone, Copy)]
struct Estimate {
    objects: f64,
    bytes: f64,
    variance: f64,
}

/// The parts of an estimate that there can be.
#[derive(Clone, Copy)]
struct Parts {
    objects: f64,
    bytes: f64,
}

impl Estimate {
    fn add(&mut self, weight: f64, bytes: u64) {
        let bytes = bytes as f64;
        self.objects += weight;
        self.bytes += weight * bytes;
        self.variance += weight * (weight - 1.0) * bytes * bytes;
    }

    /// The part of its bytes that is left, the smaller the less they are known: `e^(-power variance / bytes²)`.
    fn part_left(&self, power: f64) -> f64 {
        match self.bytes > 0.0 {
            true => (-power * self.variance / (self.bytes * self.bytes)).exp(),
            false => 1.0,
        }
    }

    fn of_parts(&self, parts: Parts) -> Estimate {
        Estimate {
            objects: self.objects * parts.objects,
            bytes: self.bytes * parts.bytes,
            variance: self.variance * parts.bytes * parts.bytes,
        }
    }

    fn deviation(&self) -> u64 {
        self.variance.sqrt().round() as u64
    }

    fn sum(&self) -> Sum {
        Sum {
            objects: self.objects.round() as u64,
            bytes: self.bytes.round() as u64,
        }
    }
}

/// The sites, if there is a session that knows them. `of_classes`: the objects of each class by its name;
/// `class`: of the instances of this class alone.
pub fn of(
    known: &Known<'_>,
    of_classes: &FxHashMap<&str, Sum>,
    class: Option<&str>,
) -> Option<Sites> {
    let graph = known.graph;
    let session = graph.sampled.session?;
    let mut sites = Sites {
        session_ns: session.elapsed_ns,
        bytes_per_sample: session.bytes_per_sample,
        lost_bytes: session.lost_bytes,
        of_class: class.map(String::from),
        ..Sites::default()
    };
    let mut rows: FxHashMap<Key<'_>, Row<'_>> = FxHashMap::default();
    for sample in &graph.sampled.samples {
        let name = graph.class_name(sample.object);
        if class.is_some_and(|class| class != name) {
            continue;
        }
        if !known.dominators.is_reached(sample.object) {
            sites.unreferenced_samples += 1;
            continue;
        }
        sites.samples += 1;
        let site = graph.sampled.site(sample).copied();
        let row = rows.entry((site, name)).or_default();
        let bytes = graph.bytes[sample.object as usize];
        row.estimate.add(sample.weight(), bytes);
        row.samples.push(sample);
    }
    let mut rows: Vec<(Key<'_>, Row<'_>)> = rows.into_iter().collect();
    let mut by_class: FxHashMap<&str, Vec<&mut Estimate>> = FxHashMap::default();
    for ((_, class), row) in &mut rows {
        by_class.entry(class).or_default().push(&mut row.estimate);
    }
    for (class, estimates) in by_class {
        fit(
            estimates,
            of_classes.get(class).copied().unwrap_or_default(),
        );
    }
    let mut total = Estimate::default();
    for (_, row) in &rows {
        total.objects += row.estimate.objects;
        total.bytes += row.estimate.bytes;
        total.variance += row.estimate.variance;
    }
    (sites.total, sites.deviation_bytes) = (total.sum(), total.deviation());
    sort(known, &mut rows);
    rows.truncate(MOST);
    let told = rows
        .into_iter()
        .map(|((site, class), row)| told(known, site, class, row));
    sites.rows = told.collect();
    Some(sites)
}

/// Makes the estimates of a class' rows smaller, so that they have no more than `all` together. A sample that stands
/// for too many bytes stands for too many objects: a row's objects become fewer as its bytes do.
fn fit(mut estimates: Vec<&mut Estimate>, all: Sum) {
    let left = |power: f64| -> f64 {
        let bytes = estimates.iter().map(|it| it.bytes * it.part_left(power));
        bytes.sum()
    };
    let power = power_for(left, all.bytes as f64);
    let bytes = part(all.bytes, left(power));
    for estimate in &mut estimates {
        let bytes = bytes * estimate.part_left(power);
        **estimate = estimate.of_parts(Parts {
            objects: bytes,
            bytes,
        });
    }
    let objects = part(all.objects, estimates.iter().map(|it| it.objects).sum());
    for estimate in &mut estimates {
        **estimate = estimate.of_parts(Parts {
            objects,
            bytes: 1.0,
        });
    }
}

/// The least power by which no more than `most` is left, as nearly as matters.
fn power_for(left: impl Fn(f64) -> f64, most: f64) -> f64 {
    if left(0.0) <= most {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while left(high) > most && high < MOST_POWER {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        match left(middle) > most {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// The part of what is estimated that there can be.
fn part(all: u64, estimated: f64) -> f64 {
    match estimated > all as f64 {
        true => all as f64 / estimated,
        false => 1.0,
    }
}

/// Rows with most bytes first.
fn sort(known: &Known<'_>, rows: &mut [(Key<'_>, Row<'_>)]) {
    let text = |number| known.graph.text(number);
    let place = |it: Place| (text(it.method), text(it.path), it.line);
    let texts = |(site, class)| {
        let site: Option<Site> = site;
        let places = site.map(|it| (place(it.made_in), place(it.called_by), text(it.endpoint)));
        (places, class)
    };
    rows.sort_by(|(key, row), (other_key, other)| {
        let bytes = other.estimate.bytes.total_cmp(&row.estimate.bytes);
        bytes
            .then_with(|| other.samples.len().cmp(&row.samples.len()))
            .then_with(|| texts(*key).cmp(&texts(*other_key)))
    });
}

fn told(known: &Known<'_>, site: Option<Site>, class: &str, row: Row<'_>) -> SiteRow {
    let place = |place: Place| {
        (place.method > 0).then(|| CodePlace {
            method: known.graph.text(place.method).into(),
            path: known.graph.text(place.path).into(),
            line: place.line,
        })
    };
    let sum = row.estimate.sum();
    let ages = |age: fn(&Sample) -> u64| {
        let ages = row.samples.iter().map(|it| (age(it), it.weight()));
        ages.collect::<Vec<_>>()
    };
    SiteRow {
        made_in: site.and_then(|it| place(it.made_in)),
        called_by: site.and_then(|it| place(it.called_by)),
        endpoint: site.map_or_else(String::new, |it| known.graph.text(it.endpoint).into()),
        class: class.into(),
        samples: row.samples.len() as u64,
        objects: sum.objects,
        bytes: sum.bytes,
        deviation_bytes: row.estimate.deviation(),
        median_age_ns: median(ages(|it| it.age_ns)),
        median_collections: median(ages(|it| it.collections)),
        oldest_ns: row.samples.iter().map(|it| it.age_ns).max().unwrap_or(0),
        held_by: paths(known, &row),
    }
}

/// The value that half of the weight doesn't reach.
fn median(mut values: Vec<(u64, f64)>) -> u64 {
    values.sort_unstable_by_key(|it| it.0);
    let half = values.iter().map(|it| it.1).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    let middle = values.iter().find(|it| {
        sum += it.1;
        sum >= half
    });
    middle.map_or(0, |it| it.0)
}

/// How most of a row's bytes are held.
fn paths(known: &Known<'_>, row: &Row<'_>) -> Vec<SitePath> {
    let mut steps: FxHashMap<u32, f64> = FxHashMap::default();
    for sample in &row.samples {
        let step = known.paths.of_objects[sample.object as usize];
        if step != NONE {
            let bytes = known.graph.bytes[sample.object as usize] as f64;
            *steps.entry(step).or_default() += sample.weight() * bytes;
        }
    }
    let all = (row.samples.iter())
        .map(|it| it.weight() * known.graph.bytes[it.object as usize] as f64)
        .sum::<f64>()
        .max(f64::MIN_POSITIVE);
    let mut steps: Vec<_> = steps.into_iter().collect();
    steps
        .sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    steps.truncate(PATHS);
    let paths = steps.into_iter().map(|(step, bytes)| {
        let (holder, steps) = known.path(step);
        let part = bytes / all;
        SitePath {
            holder,
            steps,
            part,
        }
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{self, Asked};
    use crate::file::{HeapFacts, HeapFile};
    use crate::graph::Graph;
    use crate::graph::Sampled;
    use crate::test_graphs;
    use rperf_protocol::heap::kind::Kind;
    use rperf_protocol::heap::sampled::Session;

    const MEAN: u64 = 64 << 10;

    /// A class, a Hash that is a root and holds so many objects, one that nothing refers to; each but the first two is
    /// sampled, at the first site.
    fn graph(count: u32) -> Graph {
        let mut targets = vec![vec![], (2..count + 2).collect()];
        targets.extend(vec![vec![]; count as usize + 1]);
        let mut graph = test_graphs::of(&targets, &[0, 1]);
        graph.texts = ["", "Item", "Cart#add", "/srv/cart.rb", "Api#get", "POST /a"]
            .map(Box::from)
            .to_vec();
        graph.called = vec![(0, 1)];
        graph.kinds[0] = Kind(Kind::CLASS);
        graph.classes[0] = NONE;
        graph.classes[1] = NONE;
        let samples = (2..count + 3).map(|object| Sample {
            object,
            site: 1,
            bytes: 40,
            mean: MEAN,
            age_ns: u64::from(object),
            collections: 7,
        });
        graph.sampled = Sampled {
            session: Some(Session {
                elapsed_ns: 9,
                bytes_per_sample: MEAN,
                lost_bytes: 0,
            }),
            sites: vec![Site {
                made_in: Place {
                    method: 2,
                    path: 3,
                    line: 41,
                },
                called_by: Place::default(),
                endpoint: 5,
            }],
            samples: samples.collect(),
        };
        graph
    }

    fn sites(graph: &Graph) -> Sites {
        let file = answer::of(graph, HeapFacts::default(), Asked::default());
        let json = HeapFile::read(file.to_json().as_bytes()).expect("a file");
        assert_eq!(json, file);
        file.sites.expect("sites")
    }

    #[test]
    fn a_sample_stands_for_many_objects_with_the_bytes_that_they_have() {
        let count = 400;
        let mut graph = graph(count);
        // As many as the samples stand for: a row has no more than there are.
        graph.bytes[1] = 1 << 40;
        for object in 2..count + 2 {
            graph.bytes[object as usize] = 200;
        }
        let told = sites(&graph);
        assert_eq!((told.samples, told.unreferenced_samples), (400, 1));
        let [row] = &told.rows[..] else {
            panic!("{:?}", told.rows)
        };
        assert_eq!(row.made_in.as_ref().map(|it| it.line), Some(41));
        assert_eq!((row.called_by.as_ref(), &*row.endpoint), (None, "POST /a"));
        // There are so many of that class that something refers to.
        assert_eq!((row.objects, row.bytes), (400, 400 * 200));
        let weight = graph.sampled.samples[0].weight();
        let part = 1.0 / weight;
        let deviation = (400.0 * weight * (weight - 1.0)).sqrt() * 200.0 * part;
        assert!((row.deviation_bytes as f64 - deviation).abs() < 1.0);
        assert!((weight - 65536.0 / 40.0 - 0.5).abs() < 0.1, "{weight}");
        assert_eq!((row.median_age_ns, row.oldest_ns), (201, 401));
        assert_eq!(row.median_collections, 7);
        assert!((row.held_by[0].part - 1.0).abs() < 1e-9);
        // With a mean that is short, each stands for itself.
        for sample in &mut graph.sampled.samples {
            sample.mean = 1;
        }
        let row = sites(&graph).rows.remove(0);
        assert_eq!((row.objects, row.bytes), (400, 80_000));
        assert_eq!(row.deviation_bytes, 0);
    }

    #[test]
    fn rows_are_of_one_site_and_one_class_and_some_have_no_site() {
        let mut graph = graph(10);
        for sample in &mut graph.sampled.samples[..3] {
            sample.site = 0;
        }
        // The same place, sent twice.
        graph.sampled.sites.push(graph.sampled.sites[0]);
        graph.sampled.samples[9].site = 2;
        graph.classes[12] = NONE;
        let told = sites(&graph);
        let known = |it: &&SiteRow| it.made_in.is_some();
        let samples = |rows: Vec<&SiteRow>| rows.iter().map(|it| it.samples).sum::<u64>();
        assert_eq!(told.rows.len(), 2, "{:?}", told.rows);
        assert_eq!(samples(told.rows.iter().filter(known).collect()), 7);
        assert!(told.rows.iter().all(|it| it.class == "Item"));
    }

    #[test]
    fn all_rows_together_have_no_more_than_there_is() {
        let mut graph = graph(400);
        for sample in &mut graph.sampled.samples[..200] {
            sample.site = 0;
        }
        // Twice as heavy as those without a site.
        for object in 202..402 {
            graph.bytes[object] = 2;
        }
        let told = sites(&graph);
        let (objects, bytes) = (400, 200 + 400);
        assert_eq!((told.total.objects, told.total.bytes), (objects, bytes));
        let rows: Vec<_> = told.rows.iter().map(|it| (it.objects, it.bytes)).collect();
        assert_eq!(rows, [(200, 400), (200, 200)]);
    }

    #[test]
    fn one_sample_with_much_from_malloc_takes_nothing_from_rows_with_many() {
        let mut graph = graph(400);
        // It stands for 1,639 objects as heavy as itself.
        graph.sampled.samples[0].site = 0;
        graph.bytes[2] = 20_000;
        for object in 3..402 {
            graph.bytes[object] = 600;
        }
        // Each of the others stands for two.
        for sample in &mut graph.sampled.samples[1..] {
            sample.mean = 60;
        }
        let told = sites(&graph);
        let of_many = told.rows.iter().find(|it| it.samples > 1).expect("a row");
        let weight = graph.sampled.samples[1].weight();
        let estimated = 399.0 * weight * 600.0;
        let all = 399.0 * 600.0 + 20_000.0;
        assert!(estimated > all, "{estimated}");
        // By the same factor it would have less than a hundredth.
        let part = of_many.bytes as f64 / all;
        assert!((0.9..=1.0).contains(&part), "{part}");
        assert_eq!(
            told.rows.iter().map(|it| it.bytes).sum::<u64>(),
            told.total.bytes
        );
        assert!(told.total.bytes <= all as u64 + 1);
    }

    #[test]
    fn a_row_whose_bytes_become_fewer_has_fewer_objects() {
        let mut graph = graph(2_000);
        for object in 2..2_002 {
            graph.bytes[object] = 40;
        }
        // Five samples of 1,639 objects each, four of them of one site.
        graph.sampled.samples.truncate(5);
        graph.sampled.samples[0].site = 0;
        let told = sites(&graph);
        assert_eq!(told.rows.len(), 2);
        for row in &told.rows {
            let bytes = row.bytes as f64 / row.objects as f64;
            assert!((39.0..=41.0).contains(&bytes), "{row:?}");
        }
        assert_eq!((told.total.objects, told.total.bytes), (2_000, 80_000));
    }

    #[test]
    fn of_one_class_there_are_its_samples_alone() {
        let mut graph = graph(10);
        // Another class, of which one is sampled, and the one that nothing refers to.
        graph.texts.push("Other".into());
        graph.called.push((1, 6));
        graph.kinds[1] = Kind(Kind::CLASS);
        graph.classes[2] = 1;
        let of = |class| {
            let asked = Asked { class, tree: false };
            let file = answer::of(&graph, HeapFacts::default(), asked);
            file.sites.expect("sites")
        };
        let (all, other, item) = (of(None), of(Some("Other")), of(Some("Item")));
        assert_eq!((all.samples, all.unreferenced_samples), (10, 1));
        assert_eq!((other.samples, other.unreferenced_samples), (1, 0));
        assert_eq!((other.rows.len(), other.total.objects), (1, 1));
        assert_eq!((item.samples, item.unreferenced_samples), (9, 1));
        assert_eq!(item.of_class.as_deref(), Some("Item"));
        let bytes = other.total.bytes + item.total.bytes;
        assert_eq!(all.total.bytes, bytes);
    }

    #[test]
    fn a_program_without_a_session_has_no_sites() {
        let mut graph = graph(1);
        graph.sampled = Sampled::default();
        let file = answer::of(&graph, HeapFacts::default(), Asked::default());
        assert_eq!(file.sites, None);
    }
}

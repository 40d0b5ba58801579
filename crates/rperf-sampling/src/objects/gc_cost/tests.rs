//! The model against cycles that are made up: whatever happens, each nanosecond is given once.

use super::*;
use proptest::prelude::*;
use rperf_model::{LabelSetId, NodeId};

fn site(class: usize) -> SiteOrLost {
    // One of them had no room.
    (class != 0).then_some(Site {
        node: NodeId(1),
        thread: 1,
        labels: LabelSetId::default(),
        class,
    })
}

/// Pieces of a collection that has begun.
fn began(since_ns: u64) -> GcTimes {
    GcTimes {
        since_ns,
        has_begun: true,
        ..GcTimes::default()
    }
}

fn of_sites(costs: &GcCosts) -> Vec<(usize, u64)> {
    let sites = costs.sums().sites.into_iter();
    let named = sites.map(|(site, ns)| (site.map_or(0, |it| it.class), ns));
    named.collect()
}

#[test]
fn a_collection_is_for_what_was_sampled_before_it() {
    let mut costs = GcCosts::default();
    costs.sampled(site(1), 300.0);
    costs.sampled(site(2), 100.0);
    costs.collected(began(1_000));
    costs.sampled(site(3), 50.0);
    // The rest of its sweeping comes while new objects are made.
    costs.collected(GcTimes {
        before_ns: 400,
        ..GcTimes::default()
    });
    costs.share_due();
    assert_eq!(of_sites(&costs), [(1, 1_050), (2, 350)]);
    costs.collected(began(7));
    costs.share_due();
    assert_eq!(of_sites(&costs), [(1, 1_050), (2, 350), (3, 7)]);
}

#[test]
fn collections_without_a_sample_between_are_for_the_same_objects() {
    let mut costs = GcCosts::default();
    costs.collected(began(10));
    costs.sampled(site(1), 1.0);
    costs.collected(began(20));
    costs.collected(began(30));
    costs.share_due();
    assert_eq!(of_sites(&costs), [(1, 50)]);
    assert_eq!(costs.sums().of_none.unsampled_ns, 10);
}

#[test]
fn major_marking_is_for_what_lives() {
    let mark = GcTimes {
        marking_ns: 1_000,
        marked_at_ns: 99,
        asked_ns: 5,
        ..GcTimes::default()
    };
    let mut costs = GcCosts::default();
    costs.collected(mark);
    assert_eq!((costs.marking_ns(), costs.marked_at_ns()), (1_000, 99));
    let live = [(site(1), 30.0), (site(2), 10.0), (site(1), 10.0)];
    costs.share_marking(live.into_iter(), 100);
    assert_eq!(of_sites(&costs), [(1, 400), (2, 100)]);
    assert_eq!(costs.sums().of_none.long_lived_ns, 500);
    // Samples can stand for more than there is.
    costs.collected(mark);
    costs.share_marking(live.into_iter(), 20);
    assert_eq!(costs.sums().of_none.long_lived_ns, 500);
    costs.collected(mark);
    costs.share_marking([].into_iter(), 0);
    let of_none = costs.sums().of_none;
    assert_eq!((of_none.long_lived_ns, of_none.asked_ns), (1_500, 15));
    assert_eq!(costs.marking_ns(), 0);
}

#[test]
fn what_waits_for_its_collection_outlives_a_snapshot() {
    let mut costs = GcCosts::default();
    costs.sampled(site(1), 10.0);
    costs.collected(began(5));
    costs.share_due();
    costs.sampled(site(2), 10.0);
    costs.sampled(site(4), 30.0);
    costs.clear();
    assert_eq!(costs.sums(), GcCostSums::default());
    let mut sites: Vec<_> = costs.sites().map(|it| it.class).collect();
    sites.sort_unstable();
    assert_eq!(sites, [1, 2, 4]);
    costs.change_sites(|it| (it.class != 4).then(|| site(10 + it.class)).flatten());
    costs.collected(GcTimes {
        before_ns: 3,
        ..began(40)
    });
    costs.share_due();
    assert_eq!(of_sites(&costs), [(0, 30), (11, 3), (12, 10)]);
    assert!(costs.memory() > 0);
}

#[derive(Debug, Clone)]
enum Step {
    Sample(usize, f64),
    Collected(GcTimes),
    Marked(Vec<(usize, f64)>, u64),
    Told,
}

fn step() -> impl Strategy<Value = Step> {
    let ns = || prop_oneof![Just(0_u64), 1..10_u64, 1..10_000_000_000_u64];
    let times = (ns(), ns(), any::<bool>(), ns(), ns()).prop_map(
        |(before_ns, since_ns, has_begun, marking_ns, asked_ns)| GcTimes {
            before_ns,
            since_ns: if has_begun { since_ns } else { 0 },
            has_begun,
            marking_ns,
            asked_ns,
            marked_at_ns: 1,
        },
    );
    let sites = prop::collection::vec((0..6_usize, 0.0..1e12), 0..8);
    prop_oneof![
        4 => (0..6_usize, 1.0..1e9).prop_map(|(site, bytes)| Step::Sample(site, bytes)),
        4 => times.prop_map(Step::Collected),
        1 => (sites, 0..u64::MAX).prop_map(|(sites, all)| Step::Marked(sites, all)),
        1 => Just(Step::Told),
    ]
}

proptest! {
    /// The shares add up to all collections, and none ever shrinks.
    #[test]
    fn each_nanosecond_is_given_once(steps in prop::collection::vec(step(), 0..200)) {
        let mut costs = GcCosts::default();
        let (mut all, mut told) = (0, FxHashMap::default());
        let check = |costs: &mut GcCosts, told: &mut FxHashMap<SiteOrLost, u64>, all| {
            costs.share_due();
            costs.share_marking([].into_iter(), 0);
            let GcCostSums { sites, of_none } = costs.sums();
            let of_none = of_none.long_lived_ns + of_none.asked_ns + of_none.unsampled_ns;
            let of_sites: u64 = sites.iter().map(|it| it.1).sum();
            prop_assert_eq!(of_sites + of_none, all);
            let now: FxHashMap<_, _> = sites.into_iter().collect();
            for (site, ns) in told.iter() {
                prop_assert!(now.get(site).is_some_and(|now| now >= ns));
            }
            *told = now;
            Ok(())
        };
        for step in steps {
            match step {
                Step::Sample(class, bytes) => costs.sampled(site(class), bytes),
                Step::Collected(times) => {
                    all += times.before_ns + times.since_ns + times.marking_ns + times.asked_ns;
                    costs.collected(times);
                }
                Step::Marked(sites, count) => {
                    let live = sites.iter().map(|(class, objects)| (site(*class), *objects));
                    costs.share_marking(live, count);
                }
                Step::Told => check(&mut costs, &mut told, all)?,
            }
        }
        check(&mut costs, &mut told, all)?;
    }

    /// Each gets what its part is of the sum, to a nanosecond or a part of a million.
    #[test]
    fn shares_are_in_proportion(ns in 0..1_000_000_000_000_u64, weights in prop::collection::vec(0.0..1e12_f64, 1..50)) {
        let all: f64 = weights.iter().sum();
        prop_assume!(all > 0.0);
        let mut given = vec![0; weights.len()];
        let rows = weights.iter().copied().enumerate();
        prop_assert!(share(ns, rows, |row, ns| given[row] += ns));
        prop_assert_eq!(given.iter().sum::<u64>(), ns);
        for (weight, given) in weights.iter().zip(given) {
            let exact = ns as f64 * weight / all;
            prop_assert!((given as f64 - exact).abs() <= 1.0 + ns as f64 / 1e6, "{} {}", given, exact);
        }
    }
}

#[test]
fn a_collection_is_noticed_by_the_count_of_all() {
    let mut costs = GcCosts::default();
    assert!(costs.has_begun(7));
    assert!(!costs.has_begun(7));
    costs.sampled(site(1), 300.0);
    // One of which no time is told has taken the objects.
    assert!(costs.has_begun(8));
    costs.collected(began(0));
    costs.sampled(site(2), 100.0);
    costs.collected(began(50));
    costs.share_due();
    assert_eq!(of_sites(&costs), [(2, 50)]);
}

//! The time of collections, which differs from run to run whatever the samples.

use super::*;
use rperf_model::{CollectionSums, GcCause, Note, SampledBytes};

/// What a method and the rest cost so many collections, in a profile of many samples.
fn gc_cost(make: i64, count: u64) -> Run {
    let types = [
        ("samples", "count"),
        ("wall", "nanoseconds"),
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("gc_cost", "nanoseconds"),
    ];
    let mut profile = Profile::new(test_support::schema(&types, 4));
    profile
        .meta
        .notes
        .push(Note::SampledObjects(SampledBytes(64 << 10)));
    let mut table = WeightTable::new(5);
    let bytes = 1 << 40;
    // Those that were asked for have no bytes.
    for (name, bytes, ns) in [
        ("make", bytes, make * MS),
        ("rest", bytes, 1_000 * MS),
        ("asked", 0, make * MS),
    ] {
        let key = WeightKey {
            node: test_support::node(&mut profile, &[(name, "a.rb", 1, 1)]),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &[1, MS, bytes / 40, bytes, ns]);
    }
    profile.weights = table.into_weights();
    let sums = CollectionSums {
        count,
        wall_ns: 3_000,
        ..CollectionSums::default()
    };
    profile.collections.add(GcCause::MinorNewobj, &sums);
    Run::of(&profile, None)
}

#[test]
fn the_same_number_of_collections_may_take_longer() {
    let changed = |target, count| {
        let diff = diff(&[gc_cost(1_000, count)], &[gc_cost(target, count)]);
        let mut names = names(&diff, Change::More);
        names.sort_unstable();
        (
            names.join(" "),
            diff.total.change,
            diff.is_total_above(0.01),
        )
    };
    assert_eq!(changed(1_050, 100), (String::new(), Change::Noise, false));
    assert_eq!(changed(1_200, 50), (String::new(), Change::Noise, false));
    let many = ("asked make".into(), Change::More, true);
    assert_eq!(changed(1_200, 1_000_000), many);
    assert_eq!(changed(1_200, 0), (String::new(), Change::Unknown, false));
}

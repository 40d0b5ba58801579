//! Tests of the file of `rperf leak`.

use super::*;

const MINUTE: u64 = 60_000_000_000;

fn looks(count: u64) -> Vec<Look> {
    let amount = |objects: u64| InUse {
        objects,
        bytes: objects * 40,
    };
    let site = |method: &str| InUseSite {
        method: method.into(),
        path: "shop.rb".into(),
        line: 3,
        class: "Item".into(),
    };
    let look = |number: u64| Look {
        time_ns: 5 + number * MINUTE,
        rss_bytes: (number != 1).then(|| (100 << 20) + number * (1 << 20)),
        classes: vec![
            ("Item".into(), amount(100 + 1000 * number)),
            ("Once".into(), amount(1000 * number.min(7))),
            ("String".into(), amount(50_000)),
        ],
        total: amount(60_000),
        sites: Some(SitesInUse {
            session: if number == 0 { "a" } else { "b" }.into(),
            each: 64 << 10,
            sites: [
                (site("add"), amount(50_000 * number)),
                (site("page"), amount(1638 * (number % 2))),
            ]
            .into_iter()
            .collect(),
        }),
    };
    (0..count).map(look).collect()
}

#[test]
fn rows_that_grow_come_first_and_steady_ones_are_counted() {
    let file = LeakFile::of(&looks(11));
    let names: Vec<_> = file.classes.rows.iter().map(|it| &*it.name).collect();
    assert_eq!((names, file.classes.steady), (vec!["Item", "Once"], 1));
    let item = &file.classes.rows[0].amount;
    assert_eq!(
        (item.bytes.per_hour.round(), item.objects.per_hour.round()),
        (2_400_000.0, 60_000.0)
    );
    assert_eq!(item.objects_seen[10], 10_100);
    assert_eq!(
        file.classes.rows[1].amount.bytes.verdict,
        GrowthVerdict::GrewOnce
    );
    let rss = file.rss.expect("its growth");
    assert_eq!(
        (rss.grows(), file.looks.len(), file.time_ns()),
        (true, 11, 10 * MINUTE)
    );
    let [hours, least, most] = rss.hours_to(210 << 20, 110 << 20).expect("a time");
    assert!((hours - 100.0 / 60.0).abs() < 1e-6, "{hours}");
    assert!(least <= hours && hours <= most);
    let sites = file.sites.expect("sites");
    assert_eq!(
        (
            sites.looks.len(),
            sites.table.rows.len(),
            sites.table.steady
        ),
        (10, 1, 1)
    );
    assert_eq!(sites.table.rows[0].method, "add");
}

#[test]
fn a_file_is_read_back() {
    let file = LeakFile::of(&looks(5));
    assert_eq!(LeakFile::read(file.to_json().as_bytes()), Ok(file.clone()));
    let later = LeakFile {
        version: 2,
        ..file.clone()
    };
    assert_eq!(
        LeakFile::read(later.to_json().as_bytes()),
        Err(NoLeakFile::Later)
    );
    let other = LeakFile {
        kind: "x".into(),
        ..file
    };
    assert_eq!(
        LeakFile::read(other.to_json().as_bytes()),
        Err(NoLeakFile::Other)
    );
    assert_eq!(LeakFile::read(b"{}"), Err(NoLeakFile::Other));
}

#[test]
fn a_leak_is_found_among_many_classes_that_scatter() {
    for count in [5, 7, 11] {
        let mut state = 7_u64;
        let mut scatter = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % 1000
        };
        let looks: Vec<Look> = (0..count)
            .map(|number| {
                let of = |objects: u64| InUse {
                    objects,
                    bytes: objects * 640,
                };
                let mut classes: Vec<_> = (0..300)
                    .map(|it| (format!("C{it}"), of(5000 + scatter())))
                    .collect();
                classes.push(("Leak".into(), of(3000 * number + scatter() / 20)));
                Look {
                    time_ns: 5 + number * MINUTE,
                    classes,
                    ..Look::default()
                }
            })
            .collect();
        let file = LeakFile::of(&looks);
        let growing = file
            .classes
            .rows
            .iter()
            .filter(|it| it.amount.bytes.grows());
        let names: Vec<_> = growing.map(|it| &*it.name).collect();
        assert_eq!(names, ["Leak"], "{count} looks");
        assert!(file.classes.rows[0].amount.objects.grows());
    }
}

#[test]
fn two_looks_tell_nothing() {
    let file = LeakFile::of(&looks(2));
    assert_eq!((file.rss, file.classes.rows.len()), (None, 0));
    assert_eq!((file.classes.steady, file.classes.unknown), (0, 3));
}

//! Tests of the tables of a suite in RPV1.

use super::*;
use rperf_model::{SuiteKey, SuiteKind, SuiteSums};

fn add(profile: &mut Profile, kind: SuiteKind, group: &str, name: &str, sums: SuiteSums) {
    let key = SuiteKey {
        kind,
        group: group.into(),
        name: name.into(),
    };
    profile.suite.add(key, &sums);
}

fn took(wall_ns: u64, title: &str) -> SuiteSums {
    SuiteSums {
        title: title.into(),
        count: 1,
        wall_ns,
        running_ns: wall_ns.saturating_sub(3),
        gc_ns: 1,
        blocked_ns: 2,
        own_ns: wall_ns / 2,
        top_level: 1,
        objects: Some(7),
        ..SuiteSums::default()
    }
}

fn texts(decoded: &Decoded, name: &str) -> Vec<String> {
    let strings = decoded.strings();
    let indexes = decoded.column(name).into_iter();
    indexes.map(|it| strings[it as usize].clone()).collect()
}

#[test]
fn it_tells_of_tests_files_and_factories() {
    let mut profile = Profile::new(wall_schema());
    let example = SuiteKind::Example;
    add(&mut profile, example, "a", "a[1]", took(500, "Cart adds"));
    add(&mut profile, example, "b", "b[1]", took(900, "Cart waits"));
    add(&mut profile, example, "b", "", took(10, ""));
    add(&mut profile, SuiteKind::Hooks, "a", "", took(700, ""));
    let unknown = SuiteSums {
        objects: None,
        ..took(u64::MAX, "")
    };
    add(&mut profile, SuiteKind::Factory, "", "team", unknown);
    add(&mut profile, SuiteKind::Factory, "", "user", took(40, ""));
    let none = Profile::new(wall_schema());
    let decoded = Decoded::of(&view(&[("", &none), ("", &profile)]), MAX_BYTES);

    let columns = decoded.header["columns"].as_array().expect("a list");
    let names = columns.iter().filter_map(|entry| entry["name"].as_str());
    let of_none = names.filter(|name| name.starts_with("suite/0") || name.starts_with("tests/0"));
    assert_eq!(of_none.count(), 0, "a profile without tests has no table");
    let column = |name: &str| decoded.column(name);
    let texts = |name: &str| texts(&decoded, name);
    assert_eq!(column("suite/1/count"), [3]);
    assert_eq!(column("suite/1/wall"), [2_110]);
    assert_eq!(column("suite/1/objects"), [28]);
    for (name, count) in [("tests", 3), ("files", 2), ("factories", 2)] {
        assert_eq!(column(&format!("suite/1/{name}")), [count]);
    }
    assert_eq!(column("suite/1/without_row"), [1]);
    assert_eq!(texts("tests/1/name"), ["b[1]", "a[1]", ""]);
    assert_eq!(texts("tests/1/title"), ["Cart waits", "Cart adds", ""]);
    assert_eq!(texts("tests/1/file"), ["b", "a", "b"]);
    assert_eq!(column("tests/1/wall"), [900, 500, 10]);
    assert_eq!(column("tests/1/running"), [897, 497, 7]);
    assert_eq!(column("tests/1/blocked"), [2, 2, 2]);
    assert_eq!(column("tests/1/gc"), [1, 1, 1]);
    assert_eq!(column("tests/1/gvl_wait"), [0, 0, 0]);
    assert_eq!(column("tests/1/suspended"), [0, 0, 0]);
    assert_eq!(texts("test_files/1/name"), ["a", "b"]);
    assert_eq!(column("test_files/1/wall"), [1_200, 910]);
    assert_eq!(column("test_files/1/count"), [1, 2]);
    assert_eq!(column("test_files/1/hooks"), [700, 0]);
    assert_eq!(texts("factories/1/name"), ["team", "user"]);
    assert_eq!(column("factories/1/wall"), [i64::MAX, 40]);
    assert_eq!(column("factories/1/own"), [i64::MAX, 20]);
    assert_eq!(column("factories/1/top_level"), [1, 1]);
    assert_eq!(column("factories/1/objects"), [-1, 7]);
}

#[test]
fn of_large_suites_the_slowest_tests_are_told_and_how_many_there_are() {
    let mut profile = Profile::new(wall_schema());
    for number in 0..6_000 {
        let [file, name] = [number / 10, number].map(|it| format!("{it:04}"));
        let sums = took(1_000 + number, "adds");
        add(&mut profile, SuiteKind::Example, &file, &name, sums);
    }
    let decoded = Decoded::of(&view(&[("", &profile)]), MAX_BYTES);
    assert_eq!(decoded.column("suite/0/tests"), [6_000]);
    assert_eq!(decoded.column("suite/0/wall"), [6_000_000 + 17_997_000]);
    let walls = decoded.column("tests/0/wall");
    assert_eq!((walls.len(), walls[0], walls[4_999]), (5_000, 6_999, 2_000));
    assert_eq!(decoded.column("test_files/0/wall").len(), 600);
}

#[test]
fn long_texts_leave_room_for_fewer_tests() {
    let mut profile = Profile::new(wall_schema());
    for number in 0..5 {
        let title = "x".repeat(700_000);
        let sums = took(1_000 + number, &title);
        add(
            &mut profile,
            SuiteKind::Example,
            "a",
            &format!("{number}"),
            sums,
        );
    }
    let decoded = Decoded::of(&view(&[("", &profile)]), MAX_BYTES);
    assert_eq!(texts(&decoded, "tests/0/name"), ["4", "3"]);
    assert_eq!(decoded.column("suite/0/tests"), [5]);
}

//! Tests of the classes of requests, with made-up times.

use super::*;
use crate::draw::Draw;

mod overload;

const MS: u64 = 1_000_000;

fn named<'a>(key: &'a str, name: &'a str) -> RequestName<'a> {
    RequestName { key, name }
}

fn figures(wall_ns: u64) -> Figures {
    Figures {
        wall_ns,
        is_alone: true,
        ..Figures::default()
    }
}

fn id(number: u64) -> RequestId {
    RequestId {
        session: 1,
        number: number as u32,
    }
}

/// How many of each class there are, as [`LatencyClass::ALL`] has them.
fn counts(classes: impl IntoIterator<Item = LatencyClass>) -> [usize; 6] {
    let mut counts = [0; 6];
    classes.into_iter().for_each(|it| counts[it as usize] += 1);
    counts
}

#[test]
fn the_slow_ones_in_a_hundred_are_the_tail_and_few_of_the_others() {
    for (seed, per_mille) in [(1, 10), (2, 8), (3, 12), (4, 10), (5, 5)] {
        let (mut judge, mut draw) = (Judge::default(), Draw(seed << 20 | 77));
        let (mut slow, mut others) = (Vec::new(), Vec::new());
        for number in 0..20_000 {
            let is_slow = draw.next(1_000) < per_mille;
            // Half as long again as the shortest.
            let wall = 10 * MS + draw.next(5 * MS) + if is_slow { 400 * MS } else { 0 };
            let class = judge.judge(wall, number * MS);
            if class != LatencyClass::First {
                if is_slow { &mut slow } else { &mut others }.push(class);
            }
        }
        let [slow, others] = [slow, others].map(|it| (it.len(), counts(it)));
        let tail = LatencyClass::Tail as usize;
        assert!(slow.1[tail] * 100 >= slow.0 * 95, "{seed}: {slow:?}");
        assert!(others.1[tail] * 50 < others.0, "{seed}: {others:?}");
        let typical = others.1[LatencyClass::Typical as usize];
        assert!(typical * 2 >= others.0, "{seed}: {others:?}");
    }
}

#[test]
fn several_in_a_hundred_that_are_far_slower_are_the_tail() {
    for per_mille in [30, 50, 100] {
        let (mut judge, mut draw) = (Judge::default(), Draw(per_mille << 20 | 5));
        let (mut slow, mut others) = (Vec::new(), Vec::new());
        for number in 0..10_000 {
            let is_slow = draw.next(1_000) < per_mille;
            let wall = if is_slow { 400 * MS } else { 10 * MS } + draw.next(MS);
            match judge.judge(wall, number * MS) {
                LatencyClass::First => {}
                class => if is_slow { &mut slow } else { &mut others }.push(class),
            }
        }
        let tail = LatencyClass::Tail as usize;
        let [slow, others] = [slow, others].map(|it| (it.len(), counts(it)));
        assert!(slow.1[tail] * 100 >= slow.0 * 95, "{per_mille}: {slow:?}");
        assert_eq!(others.1[tail], 0, "{per_mille}: {others:?}");
    }
}

#[test]
fn requests_that_all_take_as_long_are_typical() {
    let mut judge = Judge::default();
    let mut draw = Draw(9);
    let classes = (0..1_000).map(|_| judge.judge(1_000 * MS + draw.next(MS), 0));
    let expected = [100, 0, 900, 0, 0, 0];
    assert_eq!(counts(classes), expected);
}

#[test]
fn what_has_changed_is_forgotten_by_halves() {
    let mut judge = Judge::default();
    let mut judged = |wall: u64, count: u64| {
        counts((0..count).map(|_| judge.judge(wall, 0))).map(|it| it as u64)
    };
    judged(10 * MS, 3_000);
    let [.., tail, _] = judged(100 * MS, RENEWED_AFTER.into());
    assert!(tail > 0, "they are the slowest at first");
    judged(100 * MS, 2 * WINDOW);
    let [_, _, typical, ..] = judged(100 * MS, 500);
    assert_eq!(typical, 500, "then all are so");
}

#[test]
fn a_window_ends_after_its_time_but_never_so_that_too_few_are_known() {
    let mut judge = Judge::default();
    for number in 0..5 * KNOWN {
        let class = judge.judge(MS, number * WINDOW_NS / 20);
        assert_eq!(class == LatencyClass::First, number < KNOWN, "{number}");
    }
    assert!(judge.windows[1].count() >= KNOWN);
    assert!(judge.windows[0].count() <= KNOWN);
}

#[test]
fn endpoints_are_judged_apart_and_told_once_if_cleared() {
    let mut judged = JudgedRequests::default();
    for number in 0..200 {
        let add = |judged: &mut JudgedRequests, key, name, wall| {
            judged.add(
                RequestName { key, name },
                id(number),
                &figures(wall),
                0,
                number,
            )
        };
        add(&mut judged, "endpoint", "GET /slow", 100 * MS);
        let (class, _) = add(&mut judged, "endpoint", "GET /", MS);
        assert_eq!(class == LatencyClass::First, number < KNOWN);
        add(&mut judged, "job", "GET /", 5 * MS);
    }
    let all = |told: &[Requests]| -> Vec<(String, String, u64, u64)> {
        let row = |it: &Requests| {
            let typical = it.class(LatencyClass::Typical).count;
            (it.key.clone(), it.name.clone(), it.count(), typical)
        };
        told.iter().map(row).collect()
    };
    let row = |key: &str, name: &str| (key.into(), name.into(), 200, 100);
    let expected = [
        row("endpoint", "GET /"),
        row("endpoint", "GET /slow"),
        row("job", "GET /"),
    ];
    assert_eq!(all(&judged.told(false)), expected);
    assert_eq!(all(&judged.told(true)), expected);
    assert_eq!(judged.told(true), []);
    let (class, place) = judged.add(named("job", "GET /"), id(1), &figures(5 * MS), 0, 0);
    assert_eq!(class, LatencyClass::Typical, "what it is judged by stays");
    assert!(place.is_one, "there is room again");
}

#[test]
fn further_names_are_judged_together() {
    let mut judged = JudgedRequests::default();
    for number in 0..table::MOST + 5 {
        judged.add(
            named("endpoint", &format!("/{number}")),
            id(1),
            &figures(1),
            0,
            0,
        );
    }
    judged.add(named("endpoint", "/0"), id(1), &figures(1), 0, 0);
    let told = judged.told(false);
    let count = |name: &str| told.iter().find(|it| it.name == name).map(Requests::count);
    assert_eq!((told.len(), count("/0")), (table::MOST + 1, Some(2)));
    assert_eq!(count(table::OTHER), Some(5));
}

#[test]
fn a_name_is_told_as_the_table_has_it() {
    let mut judged = JudgedRequests::default();
    let long = "x".repeat(table::LONGEST + 1);
    for number in 0..table::MOST {
        judged.add(
            named("endpoint", &number.to_string()),
            id(1),
            &figures(MS),
            0,
            0,
        );
    }
    for (name, told) in [
        ("7", "7"),
        ("late", table::OTHER),
        (long.as_str(), table::OTHER),
    ] {
        assert_eq!(judged.told_as(named("endpoint", name)).name, told);
    }
    let judged = JudgedRequests::default();
    let told = judged.told_as(named("job", &long));
    assert_eq!(told, named("job", &long[1..]));
}

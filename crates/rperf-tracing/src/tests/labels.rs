//! Labels in a made-up VM: what is counted under each, and that nothing is lost between them.

use super::made_up_vm::{Act, Machine};
use super::{acts, profile_of, start, traced};
use crate::ClockReading;
use proptest::prelude::*;
use rperf_model::Profile;
use rperf_vm::LabelSet;
use std::collections::BTreeMap;

/// Bytes that no sums fit into.
const NO_ROOM: usize = 0;

/// A label set of this page; none for 0.
fn page(number: usize) -> Option<LabelSet> {
    let value = Some(number.to_string());
    let set = || LabelSet::empty().with([("page".to_owned(), value.clone())]);
    (number > 0).then(set)
}

/// The fiber that runs has the labels of this page.
fn put(machine: &mut Machine, number: usize) {
    machine.now += 2;
    let now = machine.now;
    let tracer = machine.tracer.as_mut().expect("it is traced");
    tracer.label(page(number).as_ref(), now);
}

/// The sums of a column by the page; 0 is none.
fn by_page(profile: &Profile, column: &str) -> BTreeMap<usize, i64> {
    let column = profile.schema.find(column).expect("a column");
    let mut sums = BTreeMap::new();
    for weight in profile.weights.iter() {
        let labels = profile.label_sets.get(weight.key.labels).first();
        let page = labels.map_or(0, |(_, value)| {
            profile.strings.get(*value).parse().expect("a page")
        });
        *sums.entry(page).or_default() += weight.value(column);
    }
    sums.retain(|_, sum| *sum != 0);
    sums
}

fn calls_of(machine: &Machine) -> i64 {
    machine.calls.values().sum()
}

proptest! {
    #[test]
    fn calls_count_under_the_labels_of_their_moment(
        steps in prop::collection::vec((acts(), 0usize..4), 1..6), is_timed in any::<bool>()
    ) {
        let mut machine = traced(if is_timed { "ruby" } else { "count" }, &[], &[]);
        let mut expected = BTreeMap::new();
        for (acts, number) in &steps {
            for act in acts {
                put(&mut machine, *number);
                let before = calls_of(&machine);
                machine.act(*act);
                *expected.entry(*number).or_default() += calls_of(&machine) - before;
            }
        }
        expected.retain(|_, calls| *calls != 0);
        let profile = profile_of(&mut machine);
        let mut calls = by_page(&profile, "calls");
        for (page, blocks) in by_page(&profile, "block_calls") {
            *calls.entry(page).or_default() += blocks;
        }
        prop_assert_eq!(calls, expected);
        for (thread, begun) in machine.begun.iter().enumerate().filter(|_| is_timed) {
            let wall = profile.schema.find("wall").expect("a column");
            let rows = profile.weights.iter().filter(|it| it.key.thread == thread as u32 + 1);
            let sum: i64 = rows.map(|weight| weight.value(wall)).sum();
            prop_assert_eq!(sum, (machine.counted() - begun) as i64, "the life of thread {}", thread);
        }
    }
}

#[test]
fn time_counts_under_the_labels_that_a_thread_has_then() {
    let mut machine = traced("ruby", &[], &[Act::Method(1)]);
    let begin = machine.now;
    put(&mut machine, 1);
    machine.now += 100;
    put(&mut machine, 2);
    // Away, too: 3 until it is told, 7 until the other one runs.
    machine.act(Act::SwitchThread(1));
    machine.act(Act::SwitchThread(0));
    put(&mut machine, 0);
    let profile = profile_of(&mut machine);
    let wall = by_page(&profile, "wall");
    assert_eq!(wall[&1], 102);
    let of_first = profile.weights.iter().filter(|it| it.key.thread == 1);
    let column = profile.schema.find("wall").expect("a column");
    let sum: i64 = of_first.map(|it| it.value(column)).sum();
    assert_eq!(sum, machine.now as i64);
    assert!(wall[&0] >= begin as i64);
    assert!(wall[&2] > 10, "blocked time is in it");
}

#[test]
fn labels_stay_on_when_what_was_counted_is_cleared() {
    let mut machine = traced("ruby", &[], &[]);
    put(&mut machine, 3);
    put(&mut machine, 2);
    machine.act(Act::Method(1));
    let now = ClockReading {
        ticks: machine.now,
        monotonic_ns: machine.now,
        ..start()
    };
    assert_eq!(by_page(&profile_of(&mut machine), "calls"), [(2, 1)].into());
    machine.tracer.as_mut().expect("it is traced").clear(now);
    machine.act(Act::Method(1));
    put(&mut machine, 1);
    machine.act(Act::Method(1));
    put(&mut machine, 2);
    machine.act(Act::Method(1));
    let profile = profile_of(&mut machine);
    assert_eq!(by_page(&profile, "calls"), [(1, 1), (2, 2)].into());
    assert_eq!(profile.label_sets.len(), 3, "page 3 is of the time before");
}

#[test]
fn what_finds_no_room_counts_without_labels_and_is_told() {
    let mut machine = traced("ruby", &[], &[]);
    let tracer = machine.tracer.as_mut().expect("it is traced");
    tracer.limit_labels(NO_ROOM);
    put(&mut machine, 1);
    machine.act(Act::Method(1));
    let profile = profile_of(&mut machine);
    assert_eq!(by_page(&profile, "calls"), [(0, 1)].into());
    let comments = profile.meta.lines().join("\n");
    assert!(comments.contains(": 1 times labels were put on for which there was no room"));
}

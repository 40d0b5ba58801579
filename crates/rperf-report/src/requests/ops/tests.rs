//! Tests of what ops took.

use super::*;
use crate::{By, Filter, Top, has_ops};
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{TestFrame, node};
use rperf_model::{Column, LatencyClass, RequestValues, Requests, State, WeightKey};

const LIST: TestFrame<'_> = ("Shop#list", "/app/shop.rb", 1, 3);
const LOOP: TestFrame<'_> = ("Shop#items", "/app/shop.rb", 9, 11);
const DRIVER: TestFrame<'_> = ("DB#exec", "/gems/db-1.0/lib/db.rb", 1, 2);
const ITEM: TestFrame<'_> = ("[SQL] item", OP, 0, 0);

fn sums(calls: u64, wall_ns: u64, blocked_ns: u64) -> OpSums {
    OpSums {
        calls,
        wall_ns,
        blocked_ns,
        ..OpSums::default()
    }
}

fn key(endpoint: &str, name: &str) -> OpKey {
    OpKey {
        key: if endpoint.is_empty() { "" } else { "endpoint" }.into(),
        endpoint: endpoint.into(),
        name: name.into(),
    }
}

/// An endpoint of ten requests with an op that one of them repeats, and one that none does.
fn profile() -> Profile {
    let mut test = TestProfile::wall();
    let profile = &mut test.profile;
    let mut requests = Requests::new("endpoint", "/list");
    for _ in 0..10 {
        requests.add(
            LatencyClass::First,
            RequestValues::default().ended_at(1),
            true,
        );
    }
    profile.requests = vec![requests];
    let mut repeated = sums(30, 900, 800);
    (repeated.requests, repeated.repeated) = (10, 1);
    profile.ops.add(key("/list", "[SQL] item"), &repeated);
    profile.ops.add(key("", "[SQL] item"), &sums(1, 50, 40));
    profile
        .ops
        .add(key("/list", "[op] outer"), &sums(1, 2_000, 60));
    let set = |profile: &mut Profile, endpoint| {
        rperf_model::test_support::labels(profile, &[("endpoint", endpoint)])
    };
    let (list, other) = (set(profile, "/list"), set(profile, "/other"));
    for (frames, labels, wall) in [
        (&[LIST, LOOP, DRIVER, ITEM][..], list, 30),
        (&[LIST, DRIVER, ITEM], list, 20),
        (&[LIST, DRIVER, ITEM], other, 100),
        (&[DRIVER, LIST], list, 1_000),
    ] {
        let key = WeightKey {
            node: node(profile, frames),
            thread: 1,
            labels,
            state: State::GvlBlocked,
        };
        profile.weights.push(key, &[1, wall, 0]);
    }
    test.profile
}

#[test]
fn ops_come_by_the_time_of_their_own_and_have_the_line_of_most_samples() {
    let times = OpTimes::of(&profile(), Sort::SelfValue).expect("ops");
    let names: Vec<_> = times
        .ops
        .iter()
        .map(|it| (&*it.name, it.sums.own_ns()))
        .collect();
    assert_eq!(names, [("[SQL] item", 840), ("[op] outer", 60)]);
    assert_eq!((times.total.calls, times.total.wall_ns), (32, 900));
    let line = |app: &Option<(Function, u32)>| app.as_ref().map(|it| (it.0.name.clone(), it.1));
    assert_eq!(line(&times.ops[0].app), Some(("Shop#list".into(), 3)));
    assert_eq!(line(&times.ops[1].app), None);
    let [repeat] = &times.repeats[..] else {
        panic!("{:?}", times.repeats)
    };
    assert_eq!((&*repeat.name, repeat.requests), ("[SQL] item", 10));
    assert_eq!(line(&repeat.app), Some(("Shop#items".into(), 11)));
}

#[test]
fn with_the_ops_inside_another_one_may_come_first() {
    let times = OpTimes::of(&profile(), Sort::TotalValue).expect("ops");
    assert_eq!(times.ops[0].name, "[op] outer");
}

#[test]
fn each_endpoint_has_its_ops() {
    let mut profile = profile();
    let job = Requests::new("job", "Export");
    profile.requests.insert(0, job);
    let all = ops_by_endpoint(&profile);
    let told = |ops: &[EndpointOp<'_>]| -> Vec<(String, u64, bool, Option<u32>)> {
        let ops = ops.iter();
        ops.map(|it| {
            let line = it.app.as_ref().map(|app| app.1);
            (it.name.to_string(), it.sums.calls, it.is_repeated, line)
        })
        .collect()
    };
    let item = ("[SQL] item".into(), 30, true, Some(11));
    let outer = ("[op] outer".into(), 1, false, None);
    assert_eq!(
        all.iter().map(|it| told(it)).collect::<Vec<_>>(),
        [vec![], vec![item, outer]]
    );
    assert!(ops_by_endpoint(&TestProfile::wall().profile).is_empty());
}

#[test]
fn samples_are_of_the_innermost_op_of_their_stack() {
    let mut profile = profile();
    let rows = |profile: &Profile| {
        let top = Top::of(profile, Column(1), &By::Op);
        let rows = top.sorted(Sort::SelfValue).into_iter();
        rows.map(|row| (row.function.name.clone(), row.self_value, row.total_value))
            .collect::<Vec<_>>()
    };
    let expected = [
        ("(no op)".to_string(), 1_000, 1_000),
        ("[SQL] item".to_string(), 150, 150),
    ];
    assert_eq!(rows(&profile), expected);
    // What filters put below it is in it.
    let leaf = Filter {
        tag_leaf: vec!["endpoint".into()],
        ..Filter::default()
    };
    profile = leaf.apply(profile).profile;
    assert_eq!(rows(&profile), expected);
    assert!(has_ops(&profile) && !has_ops(&TestProfile::wall().profile));
}

#[test]
fn without_ops_there_is_no_answer() {
    let profile = TestProfile::wall().profile;
    assert_eq!(OpTimes::of(&profile, Sort::SelfValue), None);
}

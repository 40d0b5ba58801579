//! Tests of the ops of slow requests.

use super::*;
use rperf_model::{OpKey, OpSums};

#[test]
fn ops_are_told_by_request_of_each_kind() {
    let mut profile = profile(30);
    let of = |key: &str, endpoint: &str, name: &str| OpKey {
        key: key.into(),
        endpoint: endpoint.into(),
        name: name.into(),
    };
    let mut sums = OpSums {
        calls: 660,
        requests: 90,
        repeated: 45,
        ..OpSums::default()
    };
    for (class, calls) in [(LatencyClass::Typical, 60), (LatencyClass::Tail, 600)] {
        sums.classes[class as usize] = rperf_model::OpCalls {
            calls,
            wall_ns: calls * MS,
        };
    }
    profile
        .ops
        .add(of("endpoint", "GET /orders", "query"), &sums);
    profile.ops.add(of("job", "GET /orders", "of a job"), &sums);
    profile.ops.add(of("", "", "query"), &sums);
    let orders = profile.requests.iter().find(|it| it.name == "GET /orders");
    let why = Why::of(&profile, orders.expect("the endpoint"));
    let [op] = &why.ops[..] else {
        panic!("{:?}", why.ops)
    };
    assert_eq!((op.calls.typical, op.calls.tail), (1_000, 20_000));
    assert_eq!((op.wall.typical, op.wall.tail), (MS as i64, 20 * MS as i64));
    assert_eq!(op.repeated_percent, Some(50.0));
}

#[test]
fn ops_come_by_what_they_took_without_those_inside() {
    for has_classes in [true, false] {
        let mut profile = profile(30);
        for (name, wall_ns, own_ns) in [
            ("[render] page", 100 * MS, 10 * MS),
            ("[SQL] a", 60 * MS, 60 * MS),
            ("[SQL] b", 20 * MS, 20 * MS),
        ] {
            let mut sums = OpSums {
                calls: 30,
                wall_ns: 30 * wall_ns,
                blocked_ns: 30 * own_ns,
                ..OpSums::default()
            };
            if has_classes {
                sums.classes[LatencyClass::Tail as usize] = rperf_model::OpCalls {
                    calls: 30,
                    wall_ns: 30 * wall_ns,
                };
            }
            let key = OpKey {
                key: "endpoint".into(),
                endpoint: "GET /orders".into(),
                name: name.into(),
            };
            profile.ops.add(key, &sums);
        }
        let orders = profile.requests.iter().find(|it| it.name == "GET /orders");
        let why = Why::of(&profile, orders.expect("the endpoint"));
        let names: Vec<_> = why.ops.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["[SQL] a", "[SQL] b", "[render] page"]);
    }
}

//! Tests of the table of ops in RPV1.

use super::*;
use rperf_model::frame_kind::OP;
use rperf_model::test_support::{TestFrame, labels, node};
use rperf_model::{OpCalls, OpKey, OpSums};

#[test]
fn it_tells_of_the_ops_of_each_endpoint() {
    let mut profile = Profile::new(wall_schema());
    let mut orders = Requests::new("endpoint", "/orders");
    for _ in 0..10 {
        orders.add(
            LatencyClass::Typical,
            RequestValues::default().ended_at(1),
            true,
        );
    }
    profile.requests = vec![Requests::new("endpoint", "/about"), orders];
    let key = |endpoint: &str, name: &str| OpKey {
        key: "endpoint".into(),
        endpoint: endpoint.into(),
        name: name.into(),
    };
    let mut sums = OpSums {
        calls: 50,
        wall_ns: 900,
        blocked_ns: 800,
        running_ns: 100,
        requests: 10,
        repeated: 1,
        objects: Some(7),
        ..OpSums::default()
    };
    (0..50).for_each(|_| sums.blocked.add(16));
    sums.classes[LatencyClass::Typical as usize] = OpCalls {
        calls: 50,
        wall_ns: 900,
    };
    profile.ops.add(key("/orders", "[SQL] item"), &sums);
    (sums.requests, sums.repeated, sums.objects) = (0, 0, None);
    profile.ops.add(key("/orders", "[op] b"), &sums);
    profile.ops.add(key("/gone", "[op] c"), &sums);
    let app: TestFrame<'_> = ("Shop#items", "/app/shop.rb", 9, 11);
    let item: TestFrame<'_> = ("[SQL] item", OP, 0, 0);
    let labels = labels(&mut profile, &[("endpoint", "/orders")]);
    let row = WeightKey {
        node: node(&mut profile, &[app, item]),
        thread: 0,
        labels,
        state: State::GvlBlocked,
    };
    profile.weights.push(row, &[1, 5, 5]);
    let none = Profile::new(wall_schema());
    let decoded = Decoded::of(&view(&[("", &none), ("", &profile)]), MAX_BYTES);

    let columns = decoded.header["columns"].as_array().expect("a list");
    let names = columns.iter().filter_map(|entry| entry["name"].as_str());
    assert_eq!(names.filter(|name| name.starts_with("ops/0/")).count(), 0);
    let column = |name: &str| decoded.column(name);
    let strings = decoded.strings();
    let texts = |name: &str| -> Vec<&str> {
        let indexes = column(name).into_iter();
        indexes.map(|it| &*strings[it as usize]).collect()
    };
    assert_eq!(column("requests/1/ops"), [0, 2]);
    assert_eq!(texts("ops/1/name"), ["[SQL] item", "[op] b"]);
    assert_eq!(texts("ops/1/method"), ["Shop#items", ""]);
    assert_eq!(texts("ops/1/file"), ["shop.rb", ""]);
    assert_eq!(column("ops/1/line"), [11, 0]);
    assert_eq!(column("ops/1/calls"), [50, 50]);
    assert_eq!(column("ops/1/requests"), [10, 0]);
    assert_eq!(column("ops/1/repeated"), [1, 0]);
    assert_eq!(column("ops/1/objects"), [7, -1]);
    assert_eq!(column("ops/1/blocked"), [800, 800]);
    assert_eq!(column("ops/1/max"), [16, 16]);
    assert_eq!(column("ops/1/typical_wall"), [900, 900]);
    assert_eq!(column("ops/1/tail_calls"), [0, 0]);
}

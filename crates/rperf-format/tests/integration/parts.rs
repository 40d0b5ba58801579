//! What Markdown says of slow requests, ops, tests, the loading of files and collections, byte by byte, and that no
//! text of a profile is markup there.

use crate::golden::assert_golden;
use crate::profiles::Builder;
use rperf_format::Parts;
use rperf_format::answers::{self, FilteredProfile};
use rperf_format::markdown::{markdown_of, markdown_of_endpoint, markdown_of_endpoints};
use rperf_model::frame_kind::OP;
use rperf_model::label_keys::{GC_CAUSE, LATENCY, REQUEST};
use rperf_model::test_support::{TestFrame, wall_schema};
use rperf_model::{
    CollectionSums, GcCause, LatencyClass, Meta, OpCalls, OpKey, OpSums, OwnColumn, Profile,
    RequestId, RequestValues, Requests, Slowest, State, SuiteKey, SuiteKind, SuiteSums,
};
use rperf_report::{EndpointTimes, Sort, Why, find_requests};

const MS: u64 = 1_000_000;

/// Text that would be markup, a row or a line of its own.
const ODD: &str = "a|b `c` <i>@me</i>\n# d";

const MAIN: TestFrame<'_> = ("<main>", "/srv/bin/app", 1, 2);
const REQUIRE: TestFrame<'_> = ("Kernel#require", "<C method>", 0, 0);
const RACK: TestFrame<'_> = ("<top (required)>", "/gems/rack-3.1.8/lib/rack.rb", 1, 3);
const RUN: TestFrame<'_> = (
    "Rails::Initializable::Initializer#run",
    "/gems/railties-8.0.1/lib/rails/initializable.rb",
    30,
    32,
);
const RAILTIE: TestFrame<'_> = ("block in <class:Railtie>", "/gems/a-1.0/railtie.rb", 40, 44);
const QUERY: TestFrame<'_> = ("Shop#query", "/srv/shop.rb", 9, 11);
const SLEEP: TestFrame<'_> = ("Kernel#sleep", "<C method>", 0, 0);
const SPIN: TestFrame<'_> = ("Export#spin", "/srv/export.rb", 1, 2);

/// A shop whose slow orders wait for a database, for a job and for collections. `name`: of all that has a name.
fn shop(name: &str) -> Profile {
    let schema = wall_schema().with([OwnColumn::GvlBlame, OwnColumn::GvlWaitedFor]);
    let meta = Meta {
        frequency: 1000,
        duration_ns: 60_000 * MS,
        program: "shop".into(),
        roots: vec!["/srv".into()],
        ..Meta::default()
    };
    let mut builder = Builder::new(schema, meta);
    builder.thread(1, "main");
    let endpoint = format!("GET /{name}");
    let op = format!("[SQL] {name}");
    let method = format!("Shop#{name}");
    let (page, query): (TestFrame<'_>, TestFrame<'_>) =
        ((&method, "/srv/shop.rb", 1, 3), (&op, OP, 0, 0));
    let of = |class| [("endpoint", &*endpoint), (LATENCY, class)];
    let [none, typical, tail, job, example] = [
        vec![],
        of("typical").to_vec(),
        of("tail").to_vec(),
        vec![("job", "Export")],
        vec![("example", "cart_spec.rb[1:1]")],
    ]
    .map(|pairs| builder.labels(&pairs));
    let collecting = [(GC_CAUSE, "major oldgen"), (REQUEST, "00000007-1")];
    let collecting = [&of("tail")[..], &collecting].concat();
    let collecting = builder.labels(&collecting);
    let ms = MS as i64;
    for (frames, labels, state, [samples, wall, blame, waited]) in [
        (&[MAIN][..], none, State::Running, [5, 5, 0, 0]),
        (&[MAIN, REQUIRE], none, State::Running, [20, 20, 0, 0]),
        (&[MAIN, REQUIRE, RACK], none, State::Running, [30, 30, 0, 0]),
        (&[RUN, RAILTIE], none, State::Running, [12, 12, 0, 0]),
        (&[page], typical, State::Running, [600, 600, 0, 0]),
        (&[page], tail, State::Running, [300, 300, 0, 0]),
        (
            &[page, QUERY, SLEEP, query],
            tail,
            State::GvlBlocked,
            [90, 9_000, 0, 0],
        ),
        (
            &[page, QUERY],
            collecting,
            State::GcMarking,
            [600, 600, 0, 0],
        ),
        (&[SPIN], job, State::Running, [4_000, 4_000, 2_900, 0]),
        (&[SPIN], tail, State::Running, [0, 0, 0, 2_400]),
        (&[page], example, State::Running, [40, 40, 0, 0]),
    ] {
        let node = builder.node(frames);
        let values = [samples, wall * ms, wall * ms, blame * ms, waited * ms];
        builder.add(node, 1, labels, state, &values);
    }
    let mut profile = builder.finish();
    profile.requests = requests(&endpoint);
    add_ops(&mut profile, &endpoint, &op);
    add_tests(&mut profile, name);
    for (cause, pause) in [
        (GcCause::MinorNewobj, 2 * MS),
        (GcCause::MajorOldgen, 9 * MS),
    ] {
        let mut sums = CollectionSums {
            count: 1,
            wall_ns: pause,
            marking_ns: pause / 2,
            ..CollectionSums::default()
        };
        sums.pauses.add(pause);
        profile.collections.add(cause, &sums);
    }
    profile
}

/// 60 typical requests of 10 ms, and 30 of the tail that take 420 ms more.
fn requests(endpoint: &str) -> Vec<Requests> {
    let values = |[running, gvl_wait, blocked, gc]: [u64; 4]| RequestValues {
        wall: (running + gvl_wait + blocked + gc) * MS,
        running: running * MS,
        gvl_wait: gvl_wait * MS,
        blocked: blocked * MS,
        gc: gc * MS,
        objects: running * 100,
        ..RequestValues::default()
    };
    let mut orders = Requests::new("endpoint", endpoint);
    for number in 0..60 {
        let ended = values([10, 0, 0, 0]).ended_at(number);
        orders.add(LatencyClass::Typical, ended, true);
    }
    for number in 0..30 {
        let slow = Slowest {
            id: RequestId {
                session: 7,
                number: number + 1,
            },
            ..values([10, 100, 300, 20]).ended_at(number.into())
        };
        orders.add(LatencyClass::Tail, slow, true);
    }
    let mut export = Requests::new("job", "Export");
    export.add(
        LatencyClass::First,
        values([4_000, 0, 0, 0]).ended_at(1),
        true,
    );
    vec![export, orders]
}

fn add_ops(profile: &mut Profile, endpoint: &str, name: &str) {
    let key = |endpoint: &str, name: &str| OpKey {
        key: if endpoint.is_empty() { "" } else { "endpoint" }.into(),
        endpoint: endpoint.into(),
        name: name.into(),
    };
    let mut sums = OpSums {
        calls: 960,
        wall_ns: 9_600 * MS,
        blocked_ns: 9_000 * MS,
        running_ns: 600 * MS,
        requests: 90,
        repeated: 90,
        objects: Some(7),
        ..OpSums::default()
    };
    (0..960).for_each(|_| sums.blocked.add(9 * MS));
    let calls = |calls, wall_ms| OpCalls {
        calls,
        wall_ns: wall_ms * MS,
    };
    sums.classes[LatencyClass::Typical as usize] = calls(360, 600);
    sums.classes[LatencyClass::Tail as usize] = calls(600, 9_000);
    profile.ops.add(key(endpoint, name), &sums);
    (sums.requests, sums.repeated, sums.objects) = (0, 0, None);
    (sums.calls, sums.wall_ns, sums.blocked_ns) = (2, 650 * MS, 50 * MS);
    profile.ops.add(key("", "[HTTP] GET api"), &sums);
}

fn add_tests(profile: &mut Profile, name: &str) {
    let mut add = |kind, group: &str, name: &str, wall: u64| {
        let key = SuiteKey {
            kind,
            group: group.into(),
            name: name.into(),
        };
        let sums = SuiteSums {
            title: if wall == 500 {
                name.to_string()
            } else {
                String::new()
            },
            count: 1,
            wall_ns: wall * MS,
            running_ns: (wall - 3) * MS,
            gc_ns: MS,
            blocked_ns: 2 * MS,
            own_ns: wall / 2 * MS,
            top_level: 1,
            objects: Some(7),
            ..SuiteSums::default()
        };
        profile.suite.add(key, &sums);
    };
    add(SuiteKind::Example, "cart_spec.rb", name, 500);
    add(SuiteKind::Example, "cart_spec.rb", "", 10);
    add(SuiteKind::Hooks, "cart_spec.rb", "", 40);
    add(SuiteKind::Factory, "", name, 40);
    add(SuiteKind::Factory, "", "", 30);
}

fn written(profile: &Profile, parts: Parts, limit: Option<usize>) -> String {
    let all = FilteredProfile::all(profile);
    markdown_of(all, parts, Sort::SelfValue, limit)
}

const ALL: Parts = Parts {
    boot: true,
    tests: true,
    ops: true,
    gc: true,
};

fn endpoints(profile: &Profile) -> String {
    let all = EndpointTimes::all(profile);
    markdown_of_endpoints(profile, &all, &Why::first_of(profile, &all, 5))
}

fn endpoint(profile: &Profile, name: &str) -> String {
    let requests = find_requests(profile, name).expect("one");
    markdown_of_endpoint(profile, &Why::of(profile, requests))
}

#[test]
fn parts_are_as_they_were() {
    let profile = shop("orders");
    let none = Parts::default();
    for (name, parts) in [
        ("boot", Parts { boot: true, ..none }),
        (
            "tests",
            Parts {
                tests: true,
                ..none
            },
        ),
        ("ops", Parts { ops: true, ..none }),
        ("gc", Parts { gc: true, ..none }),
    ] {
        let text = written(&profile, parts, None);
        assert_golden(&format!("part.{name}.md"), text.as_bytes());
    }
}

#[test]
fn slow_requests_are_as_they_were() {
    let profile = shop("orders");
    assert_golden("why.md", endpoints(&profile).as_bytes());
    assert_golden("why.orders.md", endpoint(&profile, "orders").as_bytes());
    assert_golden("why.job.md", endpoint(&profile, "Export").as_bytes());
}

#[test]
fn answers_about_slow_requests_are_as_they_were() {
    let profile = shop("orders");
    let all = format!("{}\n", answers::endpoints(&profile));
    assert_golden("why.json", all.as_bytes());
    let requests = find_requests(&profile, "orders").expect("one");
    let one = format!("{}\n", answers::endpoint(&Why::of(&profile, requests)));
    assert_golden("why.orders.json", one.as_bytes());
    profile_without_requests_has_no_answer();
}

fn profile_without_requests_has_no_answer() {
    let mut profile = shop("orders");
    profile.requests.clear();
    assert_eq!(answers::endpoints(&profile).to_string(), "null");
}

#[test]
fn several_parts_have_one_head() {
    let text = written(&shop("orders"), ALL, Some(1));
    let titles: Vec<_> = text.lines().filter(|it| it.starts_with('#')).collect();
    let expected = [
        "## Profile of `shop`",
        "### Loading of files",
        "### Loading by gem",
        "### Initializers of Rails",
        "### Which file loads which, from 1% on",
        "### Slowest tests",
        "### Files of tests",
        "### Factories",
        "### Gems of tests",
        "### Ops",
        "### Ops that requests call again and again",
        "### Collections of garbage",
    ];
    assert_eq!(titles, expected);
    assert_eq!(text.matches("1 more are not shown.\n").count(), 6, "{text}");
    assert!(!text.contains("\n\n\n"), "{text}");
}

/// The text without its code spans, as far as it has them.
fn without_code(text: &str) -> String {
    let mut rest = text.to_string();
    while let Some(start) = rest.find('`') {
        let after = rest[start..].trim_start_matches('`');
        let fence = "`".repeat(rest.len() - start - after.len());
        let length = after.find(&fence).expect("the end of the span");
        let end = rest.len() - after.len() + length + fence.len();
        rest.replace_range(start..end, "CODE");
    }
    rest
}

#[test]
fn no_text_of_a_profile_is_markup() {
    let (plain, odd) = (shop("orders"), shop(ODD));
    let reports: [fn(&Profile) -> String; 3] = [
        |it| written(it, ALL, None),
        endpoints,
        |it| endpoint(it, "GET /"),
    ];
    for write in reports {
        let (plain, odd) = (write(&plain), write(&odd));
        assert!(odd.contains("<i>@me</i> # d"), "{odd}");
        assert_eq!(without_code(&odd), without_code(&plain));
    }
}

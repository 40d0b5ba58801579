//! Tests of what slow requests have that others don't.

mod ops;
mod slowest;

use super::*;
use rperf_model::label_keys::LATENCY;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{TestFrame, node};
use rperf_model::{LabelSetId, RequestValues, WeightKey};

const MS: u64 = 1_000_000;
const RENDER: TestFrame<'_> = ("Shop#render", "/app/shop.rb", 1, 3);
const QUERY: TestFrame<'_> = ("Shop#query", "/app/shop.rb", 9, 11);
const SLEEP: TestFrame<'_> = ("Kernel#sleep", "<C method>", 0, 0);
const SPIN: TestFrame<'_> = ("Export#spin", "/app/export.rb", 1, 2);

/// An endpoint with typical requests of 10 ms and slow ones, which sleep 400 ms in a method of their own.
fn profile(tail: u64) -> Profile {
    let mut test = TestProfile::wall();
    let profile = &mut test.profile;
    let mut orders = Requests::new("endpoint", "GET /orders");
    let values = |running, blocked| RequestValues {
        wall: running + blocked,
        running,
        blocked,
        objects: running / MS,
        ..RequestValues::default()
    };
    for _ in 0..60 {
        orders.add(LatencyClass::Typical, values(10 * MS, 0).ended_at(1), true);
    }
    for _ in 0..tail {
        orders.add(
            LatencyClass::Tail,
            values(12 * MS, 400 * MS).ended_at(2),
            true,
        );
    }
    let mut quiet = Requests::new("job", "Export");
    quiet.add(LatencyClass::First, values(5 * MS, 0).ended_at(3), false);
    profile.requests = vec![quiet, orders];
    let mut labels = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let pairs =
            pairs.map(|(key, value)| (profile.strings.intern(key), profile.strings.intern(value)));
        let pairs = pairs.collect();
        profile.label_sets.intern(pairs)
    };
    let of = |class| [("endpoint", "GET /orders"), (LATENCY, class)];
    let (typical, slow, open) = (
        labels(&of("typical")),
        labels(&of("tail")),
        labels(&of("open")),
    );
    let other = labels(&[("endpoint", "GET /other"), (LATENCY, "tail")]);
    let slept = 400 * (MS * tail) as i64;
    for (frames, labels, state, wall) in [
        (&[RENDER][..], typical, State::Running, 600 * MS as i64),
        (&[RENDER], slow, State::Running, 12 * (MS * tail) as i64),
        (&[RENDER, QUERY, SLEEP], slow, State::GvlBlocked, slept),
        (&[RENDER, SLEEP], other, State::GvlBlocked, 7_000),
        (&[RENDER], open, State::Running, 77),
    ] {
        let key = WeightKey {
            node: node(profile, frames),
            thread: 1,
            labels,
            state,
        };
        profile.weights.push(key, &[1, wall, 0]);
    }
    test.profile
}

#[test]
fn the_part_that_grew_and_its_method_come_first() {
    let profile = profile(30);
    let all = EndpointTimes::all(&profile);
    assert_eq!(all[0].requests.name, "GET /orders");
    assert_eq!(all[0].excess(), 402 * MS as i64);
    assert!(all[0].share(Part::Blocked) > 99.0);
    assert_eq!(all[1].excess(), 0, "nothing to compare");
    let why = Why::of(&profile, all[0].requests);
    assert!(why.has_enough());
    let blocked = &why.sites[Part::Blocked as usize];
    let [site] = &blocked[..] else {
        panic!("{blocked:?}")
    };
    let name = |it: &Function| it.name.clone();
    assert_eq!(site.method.as_ref().map(name), Some("Kernel#sleep".into()));
    let app = site.app.as_ref().map(|(it, line)| (name(it), *line));
    assert_eq!(app, Some(("Shop#query".into(), 11)));
    assert_eq!(site.means.tail, 400 * MS as i64);
    let objects = why.objects.map(|it| (it.typical, it.tail));
    assert_eq!(objects, Some((10, 12)));
    assert_eq!((why.open_ns, why.holders), (77, None));
}

#[test]
fn the_costly_endpoints_come_with_their_causes() {
    let mut profile = profile(30);
    let values = |running, gvl_wait, blocked| RequestValues {
        wall: running + gvl_wait + blocked,
        running,
        gvl_wait,
        blocked,
        ..RequestValues::default()
    };
    let mut mixed = Requests::new("endpoint", "GET /mixed");
    let mut even = Requests::new("endpoint", "GET /even");
    for _ in 0..20 {
        mixed.add(LatencyClass::Typical, values(MS, 0, 0).ended_at(1), true);
        // Of 40 ms more these are 70, 25 and 5 %.
        let slow = values(3 * MS, 28 * MS, 10 * MS);
        mixed.add(LatencyClass::Tail, slow.ended_at(2), true);
        even.add(LatencyClass::Typical, values(MS, 0, 0).ended_at(1), true);
        even.add(LatencyClass::Tail, values(MS, 0, 0).ended_at(2), true);
    }
    profile.requests.extend([even, mixed]);
    let all = EndpointTimes::all(&profile);
    let told = |limit| -> Vec<_> {
        let first = Why::first_of(&profile, &all, limit);
        let told = first
            .iter()
            .map(|why| (&*why.times.requests.name, why.causes()));
        told.map(|(name, causes)| (name.to_string(), causes))
            .collect()
    };
    let orders = ("GET /orders".to_string(), vec![Part::Blocked]);
    let mixed = ("GET /mixed".to_string(), vec![Part::GvlWait, Part::Blocked]);
    assert_eq!(told(1), std::slice::from_ref(&orders));
    assert_eq!(told(9), [orders, mixed], "what isn't slower has no cause");
    let first = Why::first_of(&profile, &all, 1);
    let alone = Why::of(&profile, all[0].requests);
    assert_eq!(first[0].sites, alone.sites);
    assert_eq!(first[0].holders, alone.holders);
}

#[test]
fn a_job_that_a_request_runs_is_no_job_by_itself() {
    let mut profile = profile(30);
    let intern = |profile: &mut Profile, pairs: &[(&str, &str)]| {
        let pairs = pairs.iter();
        let pairs = pairs.map(|(key, value)| {
            let strings = &mut profile.strings;
            (strings.intern(key), strings.intern(value))
        });
        let pairs = pairs.collect();
        profile.label_sets.intern(pairs)
    };
    let job = ("job", "Export");
    let request = ("endpoint", "GET /orders");
    let tail = (LATENCY, "tail");
    let [inside, alone] =
        [&[request, job, tail][..], &[job, tail]].map(|it| intern(&mut profile, it));
    for (frame, labels) in [(QUERY, inside), (SPIN, alone)] {
        let key = WeightKey {
            node: node(&mut profile, &[frame]),
            thread: 1,
            labels,
            state: State::Running,
        };
        profile.weights.push(key, &[1, 50_000, 0]);
    }
    let why = Why::of(&profile, &profile.requests[0]);
    let running = why.sites[Part::Running as usize].iter();
    let names: Vec<_> = running
        .filter_map(|it| it.method.as_ref().map(|it| &*it.name))
        .collect();
    assert_eq!(names, ["Export#spin"]);
}

#[test]
fn the_time_of_rperf_itself_is_at_no_line_of_the_application() {
    const MIDDLEWARE: TestFrame<'_> = (
        "Rperf::RackMiddleware#call",
        "/g/gems/rperf-1.0.0/lib/rperf/rack/middleware.rb",
        1,
        8,
    );
    const NATIVE: TestFrame<'_> = ("Rperf::Native.end_request", "<C method>", 0, 0);
    let mut profile = profile(30);
    let tail = [("endpoint", "GET /orders"), (LATENCY, "tail")];
    let labels = labels(&mut profile, &tail);
    let stacks = [
        (&[SPIN, MIDDLEWARE, NATIVE][..], 60_000),
        (&[SPIN, MIDDLEWARE], 60_000),
        (&[SPIN, MIDDLEWARE, QUERY], 30_000),
    ];
    for (frames, wall) in stacks {
        let key = WeightKey {
            node: node(&mut profile, frames),
            thread: 1,
            labels,
            state: State::Running,
        };
        profile.weights.push(key, &[1, wall, 0]);
    }
    let why = Why::of(&profile, &profile.requests[1]);
    let running = why.sites[Part::Running as usize].iter();
    let methods = running.filter_map(|it| Some((&*it.method.as_ref()?.name, it.means.tail)));
    let methods: Vec<_> = methods.filter(|it| it.0 != "Shop#render").collect();
    assert_eq!(methods, [("Shop#query", 1_000)]);
}

#[test]
fn numbers_that_a_file_makes_up_do_no_harm() {
    let mut profile = profile(30);
    let huge = RequestValues {
        wall: u64::MAX,
        running: u64::MAX,
        blocked: u64::MAX,
        gc: u64::MAX,
        ..RequestValues::default()
    };
    // Counts up to the largest by adding a thing to itself.
    let mut orders = profile.requests[1].clone();
    orders.add(LatencyClass::Tail, huge.ended_at(2), true);
    for _ in 0..70 {
        let same = orders.clone();
        orders.merge(&same);
    }
    profile.requests[1] = orders;
    for row in [i64::MIN, i64::MAX] {
        let key = profile.weights.get(0).expect("a row").key;
        profile.weights.push(key, &[1, row, 0]);
    }
    let all = EndpointTimes::all(&profile);
    assert!(
        all.iter()
            .all(|it| Part::ALL.iter().all(|part| it.share(*part) <= 100.0))
    );
    assert!(!Why::of(&profile, &profile.requests[1]).sites.is_empty());
}

#[test]
fn few_are_said_to_be_few() {
    let profile = profile(19);
    let why = Why::of(&profile, &profile.requests[1]);
    assert!(!why.has_enough());
    assert_eq!(why.slowest.len(), Requests::SLOWEST);
    let why = Why::of(&profile, &profile.requests[0]);
    assert!(!why.has_enough() && why.objects.is_none());
}

#[test]
fn who_had_the_gvl_is_told_by_job_and_line() {
    let mut profile = profile(30);
    let schema = profile.schema.with([OwnColumn::GvlBlame]);
    let rows = std::mem::replace(&mut profile.weights, rperf_model::Weights::new(4));
    profile.schema = schema;
    for row in rows.iter() {
        let mut values = row.values.to_vec();
        values.push(0);
        profile.weights.push(row.key, &values);
    }
    let pair = (
        profile.strings.intern("job"),
        profile.strings.intern("Export"),
    );
    let export = profile.label_sets.intern(vec![pair]);
    let at = |profile: &mut Profile, labels, thread, blame: i64| {
        let key = WeightKey {
            node: node(profile, &[SPIN]),
            thread,
            labels,
            state: State::Running,
        };
        profile.weights.push(key, &[1, 5, 0, blame]);
    };
    at(&mut profile, export, 1, 960);
    at(&mut profile, LabelSetId(0), 9, 40);
    let why = Why::of(&profile, &profile.requests[1]);
    let holders = why.holders.expect("measured");
    let shown: Vec<_> = holders.iter().map(|it| (&*it.name, it.blame)).collect();
    assert_eq!(shown[0], ("job=Export", 960));
    assert_eq!((shown[1].1, why.blame), (40, 1_000));
    let app = holders[0].app.as_ref().map(|(it, line)| (&*it.name, *line));
    assert_eq!(app, Some(("Export#spin", 2)));
    assert!(holders.iter().all(|it| it.means.is_none()));
}

fn labels(profile: &mut Profile, pairs: &[(&str, &str)]) -> rperf_model::LabelSetId {
    let strings = &mut profile.strings;
    let pairs = pairs.iter();
    let pairs = pairs.map(|(key, value)| (strings.intern(key), strings.intern(value)));
    let pairs = pairs.collect();
    profile.label_sets.intern(pairs)
}

/// A profile in which all have waited for a report most, and the slow orders for a job.
fn profile_of_pairs() -> Profile {
    let mut profile = profile(30);
    let rows = std::mem::replace(&mut profile.weights, rperf_model::Weights::new(5));
    profile.schema = profile
        .schema
        .with([OwnColumn::GvlBlame, OwnColumn::GvlWaitedFor]);
    for row in rows.iter() {
        let values = [row.values, &[0, 0]].concat();
        profile.weights.push(row.key, &values);
    }
    let values = |gvl_wait| RequestValues {
        wall: gvl_wait,
        gvl_wait,
        ..RequestValues::default()
    };
    let mut home = Requests::new("endpoint", "GET /");
    for _ in 0..40 {
        home.add(LatencyClass::Typical, values(2 * MS).ended_at(1), true);
        home.add(LatencyClass::Tail, values(52 * MS).ended_at(2), true);
    }
    profile.requests.push(home);
    let job = labels(&mut profile, &[("job", "Export")]);
    let report = labels(&mut profile, &[("endpoint", "GET /report")]);
    let of_class = |it| labels(&mut profile, &[("endpoint", "GET /"), (LATENCY, it)]);
    let [typical, tail, slow] = ["typical", "tail", "slow"].map(of_class);
    let ms = MS as i64;
    for (frame, labels, state, values) in [
        (SPIN, job, State::Running, [1, 9 * ms, 0, 2_000 * ms, 0]),
        (RENDER, report, State::Running, [1, 9, 0, 8_000 * ms, 0]),
        (RENDER, report, State::GcMarking, [1, 9, 0, 100 * ms, 0]),
        // The same code on behalf of somebody else: it hasn't made as many wait.
        (SPIN, report, State::Running, [1, 9 * ms, 0, ms, 0]),
        // What the pages have waited for, in the mean 2 ms and 47 ms.
        (RENDER, typical, State::Running, [0, 0, 0, 0, 80 * ms]),
        (RENDER, tail, State::Running, [0, 0, 0, 0, 200 * ms]),
        (RENDER, tail, State::GcMarking, [0, 0, 0, 0, 80 * ms]),
        (SPIN, tail, State::Running, [0, 0, 0, 0, 1_600 * ms]),
        (QUERY, slow, State::Running, [0, 0, 0, 0, 9_000 * ms]),
    ] {
        let key = WeightKey {
            node: node(&mut profile, &[frame]),
            thread: 1,
            labels,
            state,
        };
        profile.weights.push(key, &values);
    }
    // Stacks beyond those that a wait tells apart: of nobody in particular.
    let key = WeightKey {
        node: rperf_model::NodeId::ROOT,
        thread: 1,
        labels: tail,
        state: State::Running,
    };
    profile.weights.push(key, &[0, 0, 0, 0, 9_000 * ms]);
    profile
}

#[test]
fn slow_requests_are_told_whom_they_have_waited_for() {
    let profile = profile_of_pairs();
    let why = Why::of(&profile, &profile.requests[2]);
    let holders = why.holders.as_ref().expect("measured");
    let shown: Vec<_> = holders
        .iter()
        .map(|it| {
            let means = it.means.expect("known");
            let ms = [it.blame, means.typical, means.tail].map(|it| it / MS as i64);
            (&*it.name, ms, why.share_of(it))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("job=Export", [2_000, 0, 40], 80.0),
            ("endpoint=GET /report", [8_101, 2, 7], 10.0),
        ]
    );
    // Of 50 ms more, 45 are known.
    assert_eq!(why.share_unknown().map(f64::round), Some(10.0));
    let main: Vec<_> = why.main_holders().iter().map(|it| &*it.name).collect();
    assert_eq!(main, ["job=Export"]);
    let app = holders[0].app.as_ref().map(|(it, line)| (&*it.name, *line));
    assert_eq!(app, Some(("Export#spin", 2)));
    let all = EndpointTimes::all(&profile);
    let first = Why::first_of(&profile, &all, 9);
    let same = first
        .iter()
        .find(|it| it.times.requests.name == "GET /")
        .and_then(|it| it.holders.as_ref());
    assert_eq!(same, Some(holders));
}

#[test]
fn holders_that_are_not_told_are_known() {
    let mut profile = profile_of_pairs();
    let ms = MS as i64;
    for (name, wait) in [("a", 40), ("b", 60), ("c", 80)] {
        let node = node(&mut profile, &[(name, "/app/job.rb", 1, 2)]);
        let job = labels(&mut profile, &[("job", name)]);
        let tail = labels(&mut profile, &[("endpoint", "GET /"), (LATENCY, "tail")]);
        for (labels, values) in [(job, [1, ms, 0, ms, 0]), (tail, [0, 0, 0, 0, wait * ms])] {
            let key = WeightKey {
                node,
                thread: 1,
                labels,
                state: State::Running,
            };
            profile.weights.push(key, &values);
        }
    }
    let why = Why::of(&profile, &profile.requests[2]);
    let names = why.holders.iter().flatten().map(|it| &*it.name);
    let expected = ["job=Export", "endpoint=GET /report", "job=c"];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    // Of 50 ms more, 45 are known as before, and 180 of 40 requests.
    assert_eq!(why.share_unknown().map(f64::round), Some(1.0));
}

#[test]
fn who_has_waited_for_nobody_has_no_holders() {
    let profile = profile_of_pairs();
    let why = Why::of(&profile, &profile.requests[1]);
    assert_eq!(why.holders.as_deref(), Some(&[][..]));
    assert!(why.main_holders().is_empty());
    assert_eq!(why.share_unknown(), None);
}

#[test]
fn no_cause_has_a_method_of_rperf() {
    const MIDDLEWARE: TestFrame<'_> = (
        "Rperf::RackMiddleware#call",
        "/g/gems/rperf-1.0.0/lib/rperf/rack/middleware.rb",
        1,
        8,
    );
    let mut profile = profile_of_pairs();
    let keys: Vec<_> = profile.weights.iter().map(|row| row.key).collect();
    let rows: Vec<Vec<i64>> = profile
        .weights
        .iter()
        .map(|row| row.values.to_vec())
        .collect();
    profile.weights = rperf_model::Weights::new(5);
    for (key, values) in keys.into_iter().zip(rows) {
        let tree = profile.tree.clone();
        let mut frames = Vec::new();
        for node in tree.stack(key.node) {
            let frame = *profile.frames.get(node.frame).expect("a frame");
            let text = |id| profile.strings.get(id).to_string();
            frames.push((
                text(frame.name),
                text(frame.path),
                frame.first_line,
                node.line,
            ));
        }
        frames.reverse();
        let frames = frames.iter().map(|it| (&*it.0, &*it.1, it.2, it.3));
        let frames: Vec<TestFrame<'_>> = frames.chain([MIDDLEWARE]).collect();
        let node = node(&mut profile, &frames);
        profile.weights.push(WeightKey { node, ..key }, &values);
    }
    let all = EndpointTimes::all(&profile);
    let mut told = 0;
    for why in Why::first_of(&profile, &all, 9) {
        // All time is rperf's own.
        assert!(why.sites.iter().all(Vec::is_empty));
        for it in why.holders.iter().flatten() {
            let functions = it.method.iter().chain(it.app.iter().map(|it| &it.0));
            let names: Vec<_> = functions.map(|it| &*it.name).collect();
            assert!(names.iter().all(|it| !it.starts_with("Rperf")), "{names:?}");
            told += names.len();
        }
    }
    assert!(told > 0);
}

//! What slow requests have that the usual ones don't, as plain data. Called by `rperf why` and by the Ruby
//! API; any thread. Times are in nanoseconds.

use super::Data;
use rperf_model::{LatencyClass, Profile, Requests};
use rperf_report::{
    Collections, EndpointTimes, Function, Holder, Means, OpShare, OpTimes, Part, Repeat, Site,
    SlowRequest, Sort, Why,
};

/// Endpoints of which the answer about all says why they are slow.
pub const ENDPOINTS_TOLD: usize = 5;

type Field = (&'static str, Data);

/// All endpoints, and why the first ones are slow. Nothing if there are no requests.
pub fn endpoints(profile: &Profile) -> Data {
    if profile.requests.is_empty() {
        return Data::Null;
    }
    let all = EndpointTimes::all(profile);
    let first = Why::first_of(profile, &all, ENDPOINTS_TOLD);
    let causes = first
        .iter()
        .flat_map(|why| why.causes().into_iter().map(move |part| cause(why, part)));
    let repeats = OpTimes::of(profile, Sort::SelfValue).map_or_else(Vec::new, |it| it.repeats);
    Data::fields([
        version(),
        (
            "endpoints",
            Data::list(all.iter().map(|it| Data::Fields(times(it)))),
        ),
        ("causes", Data::list(causes)),
        ("repeats", Data::list(repeats.iter().map(repeat))),
    ])
}

/// An endpoint, and why it is slow.
pub fn endpoint(why: &Why<'_>) -> Data {
    let of = why.times.requests;
    let sites = Part::ALL.map(|part| {
        let sites = why.sites[part as usize].iter().map(|it| site(of, it));
        (key(part), Data::list(sites))
    });
    let holders = why.holders.as_ref();
    let holders = holders.map(|all| Data::list(all.iter().map(|it| holder(why, it))));
    let more = [
        ("enough", Data::Bool(why.has_enough())),
        (
            "objects",
            why.objects.map_or(Data::Null, |it| means(of, it)),
        ),
        ("sites", Data::fields(sites)),
        ("holders", holders.unwrap_or(Data::Null)),
        ("collections", collections(why)),
        ("unknown_share", number(why.share_unknown())),
        ("blame_ns", why.blame.into()),
        ("open_ns", why.open_ns.into()),
        ("ops", Data::list(why.ops.iter().map(|it| op(of, it)))),
        ("slowest", Data::list(why.slowest.iter().map(slowest))),
    ];
    let fields = [version()].into_iter().chain(times(&why.times));
    Data::fields(fields.chain(more))
}

/// The version of the fields, whose meanings docs/guide/json.md has.
fn version() -> Field {
    ("version", 1_u64.into())
}

fn cause(why: &Why<'_>, part: Part) -> Data {
    let Requests {
        key: label, name, ..
    } = why.times.requests;
    let holders = match part {
        Part::GvlWait => why.main_holders(),
        _ => Vec::new(),
    };
    let mostly_in = why.mostly_in(part).and_then(|it| it.label.as_deref());
    Data::fields([
        ("key", (&**label).into()),
        ("name", (&**name).into()),
        ("state", key(part).into()),
        ("share", Data::Number(why.times.share(part))),
        (
            "per_request_ns",
            means(why.times.requests, why.times.parts[part as usize]),
        ),
        (
            "site",
            why.sites[part as usize]
                .first()
                .map_or(Data::Null, |it| site(why.times.requests, it)),
        ),
        ("mostly_in", mostly_in.map_or(Data::Null, Data::from)),
        (
            "holders",
            Data::list(holders.into_iter().map(|it| holder(why, it))),
        ),
        (
            "collections",
            match part {
                Part::Gc => collections(why),
                _ => Data::list([]),
            },
        ),
    ])
}

fn collections(why: &Why<'_>) -> Data {
    let of = |it: &Collections| {
        Data::fields([
            ("cause", (&*it.cause).into()),
            ("share", Data::Number(why.share_of_collections(it))),
            ("per_request_ns", means(why.times.requests, it.means)),
        ])
    };
    Data::list(why.collections.iter().map(of))
}

fn key(part: Part) -> &'static str {
    match part {
        Part::Running => "running_ns",
        Part::GvlWait => "gvl_wait_ns",
        Part::Blocked => "blocked_ns",
        Part::Gc => "gc_ns",
        Part::Suspended => "suspended_ns",
    }
}

fn times(of: &EndpointTimes<'_>) -> Vec<Field> {
    let Requests {
        key: label,
        name,
        walls,
        ..
    } = of.requests;
    let classes = LatencyClass::ALL.into_iter().take(LatencyClass::ENDED);
    let classes = classes.map(|class| (class.name(), of.requests.class(class).count.into()));
    let parts = Part::ALL.map(|part| (key(part), means(of.requests, of.parts[part as usize])));
    let [typical, tail] = are_known(of.requests);
    vec![
        ("key", (&**label).into()),
        ("name", (&**name).into()),
        ("requests", of.requests.count().into()),
        ("classes", Data::fields(classes)),
        ("p50_ns", walls.quantile(500).into()),
        ("p95_ns", walls.quantile(950).into()),
        ("p99_ns", walls.quantile(990).into()),
        ("max_ns", walls.max().into()),
        ("excess_ns", (typical && tail).then(|| of.excess()).into()),
        ("means", Data::fields(parts)),
    ]
}

/// Whether there are typical requests and requests of the tail, so that they have means.
fn are_known(requests: &Requests) -> [bool; 2] {
    [LatencyClass::Typical, LatencyClass::Tail].map(|class| requests.class(class).count > 0)
}

/// The means of these requests. Of a class without any, nothing is known.
fn means(requests: &Requests, of: Means) -> Data {
    let [typical, tail] = are_known(requests);
    Data::fields([
        ("typical", typical.then_some(of.typical).into()),
        ("tail", tail.then_some(of.tail).into()),
        ("difference", (typical && tail).then(|| of.excess()).into()),
    ])
}

fn number(of: Option<f64>) -> Data {
    of.map_or(Data::Null, Data::Number)
}

fn named(function: &Function) -> [Field; 3] {
    [
        ("name", (&*function.name).into()),
        ("path", (&*function.path).into()),
        ("short_path", (&*function.short_path).into()),
    ]
}

fn method(of: &Option<Function>) -> Data {
    let of = of.as_ref();
    of.map_or(Data::Null, |it| Data::fields(named(it)))
}

fn app(of: &Option<(Function, u32)>) -> Data {
    let of = of.as_ref();
    of.map_or(Data::Null, |(function, line)| {
        let line = ("line", u64::from(*line).into());
        Data::fields(named(function).into_iter().chain([line]))
    })
}

fn site(requests: &Requests, of: &Site) -> Data {
    Data::fields([
        ("method", method(&of.method)),
        ("app", app(&of.app)),
        ("per_request_ns", means(requests, of.means)),
    ])
}

fn holder(why: &Why<'_>, of: &Holder) -> Data {
    Data::fields([
        ("name", (&*of.name).into()),
        ("share", Data::Number(why.share_of(of))),
        ("blame_ns", of.blame.into()),
        (
            "per_request_ns",
            of.means
                .map_or(Data::Null, |it| means(why.times.requests, it)),
        ),
        ("method", method(&of.method)),
        ("app", app(&of.app)),
    ])
}

fn repeat(of: &Repeat) -> Data {
    Data::fields([
        ("key", (&*of.endpoint.0).into()),
        ("endpoint", (&*of.endpoint.1).into()),
        ("name", (&*of.name).into()),
        ("calls", of.sums.calls.into()),
        ("requests", of.sums.requests.into()),
        ("repeated", of.sums.repeated.into()),
        ("endpoint_requests", of.requests.into()),
        ("own_ns", of.sums.own_ns().into()),
        ("app", app(&of.app)),
    ])
}

fn op(requests: &Requests, of: &OpShare) -> Data {
    let [typical, tail] = are_known(requests);
    let calls =
        |is_known: bool, thousandths: i64| number(is_known.then_some(thousandths as f64 / 1e3));
    let calls = [
        ("typical", calls(typical, of.calls.typical)),
        ("tail", calls(tail, of.calls.tail)),
    ];
    Data::fields([
        ("name", (&*of.name).into()),
        ("per_request_ns", means(requests, of.wall)),
        ("calls", Data::fields(calls)),
        ("repeated_percent", number(of.repeated_percent)),
        ("app", app(&of.app)),
    ])
}

fn slowest(of: &SlowRequest) -> Data {
    let values = of.took.values;
    let request = of.label.as_deref();
    Data::fields([
        ("request", request.map_or(Data::Null, Data::from)),
        ("ended_at_ns", of.took.ended_ns.into()),
        ("wall_ns", values.wall.into()),
        ("running_ns", values.running.into()),
        ("gvl_wait_ns", values.gvl_wait.into()),
        ("blocked_ns", values.blocked.into()),
        ("gc_ns", values.gc.into()),
        ("suspended_ns", values.suspended.into()),
        ("objects", values.objects.into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::{OpCalls, OpKey, OpSums, RequestValues, test_support};

    #[test]
    fn what_no_request_tells_is_null() {
        let mut profile = Profile::new(test_support::cpu_schema());
        for (name, classes) in [
            ("GET /rare", &[LatencyClass::First][..]),
            ("GET /even", &[LatencyClass::First, LatencyClass::Typical]),
        ] {
            let mut requests = Requests::new("endpoint", name);
            for class in classes {
                let values = RequestValues {
                    wall: 7_000,
                    blocked: 7_000,
                    ..RequestValues::default()
                };
                requests.add(*class, values.ended_at(1), true);
            }
            profile.requests.push(requests);
        }
        let mut sums = OpSums::default();
        sums.classes[LatencyClass::Typical as usize] = OpCalls {
            calls: 2,
            wall_ns: 5_000,
        };
        let key = |endpoint: &str| OpKey {
            key: "endpoint".into(),
            endpoint: endpoint.into(),
            name: "[SQL] BEGIN".into(),
        };
        profile.ops.add(key("GET /rare"), &OpSums::default());
        profile.ops.add(key("GET /even"), &sums);
        let told = |row: usize| endpoint(&Why::of(&profile, &profile.requests[row])).to_string();
        let (rare, even) = (told(0), told(1));
        let unknown = r#"{"typical":null,"tail":null,"difference":null}"#;
        for field in [r#""excess_ns":null"#, &format!(r#""blocked_ns":{unknown}"#)] {
            assert!(rare.contains(field), "{field} in {rare}");
        }
        let ops = |per_request: &str, calls: &str| {
            format!(r#""per_request_ns":{per_request},"calls":{calls}"#)
        };
        assert!(
            rare.contains(&ops(unknown, r#"{"typical":null,"tail":null}"#)),
            "{rare}"
        );
        let known = |ns: u64| format!(r#"{{"typical":{ns},"tail":null,"difference":null}}"#);
        assert!(
            even.contains(&format!(r#""blocked_ns":{}"#, known(7_000))),
            "{even}"
        );
        assert!(even.contains(r#""excess_ns":null"#), "{even}");
        assert!(
            even.contains(&ops(&known(5_000), r#"{"typical":2.0,"tail":null}"#)),
            "{even}"
        );
    }
}

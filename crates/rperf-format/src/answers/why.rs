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
    let sites = Part::ALL.map(|part| {
        let sites = why.sites[part as usize].iter().map(site);
        (key(part), Data::list(sites))
    });
    let holders = why.holders.as_ref();
    let holders = holders.map(|all| Data::list(all.iter().map(|it| holder(why, it))));
    let more = [
        ("enough", Data::Bool(why.has_enough())),
        ("objects", why.objects.map_or(Data::Null, means)),
        ("sites", Data::fields(sites)),
        ("holders", holders.unwrap_or(Data::Null)),
        ("collections", collections(why)),
        ("unknown_share", number(why.share_unknown())),
        ("blame_ns", why.blame.into()),
        ("open_ns", why.open_ns.into()),
        ("ops", Data::list(why.ops.iter().map(op))),
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
        ("per_request_ns", means(why.times.parts[part as usize])),
        (
            "site",
            why.sites[part as usize].first().map_or(Data::Null, site),
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
            ("per_request_ns", means(it.means)),
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
    let parts = Part::ALL.map(|part| (key(part), means(of.parts[part as usize])));
    vec![
        ("key", (&**label).into()),
        ("name", (&**name).into()),
        ("requests", of.requests.count().into()),
        ("classes", Data::fields(classes)),
        ("p50_ns", walls.quantile(500).into()),
        ("p95_ns", walls.quantile(950).into()),
        ("p99_ns", walls.quantile(990).into()),
        ("max_ns", walls.max().into()),
        ("excess_ns", of.excess().into()),
        ("means", Data::fields(parts)),
    ]
}

fn means(of: Means) -> Data {
    Data::fields([
        ("typical", of.typical.into()),
        ("tail", of.tail.into()),
        ("difference", of.excess().into()),
    ])
}

fn number(of: Option<f64>) -> Data {
    of.map_or(Data::Null, Data::Number)
}

fn named(function: &Function) -> [Field; 2] {
    [
        ("name", (&*function.name).into()),
        ("path", (&*function.short_path).into()),
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

fn site(of: &Site) -> Data {
    Data::fields([
        ("method", method(&of.method)),
        ("app", app(&of.app)),
        ("per_request_ns", means(of.means)),
    ])
}

fn holder(why: &Why<'_>, of: &Holder) -> Data {
    Data::fields([
        ("name", (&*of.name).into()),
        ("share", Data::Number(why.share_of(of))),
        ("blame_ns", of.blame.into()),
        ("per_request_ns", of.means.map_or(Data::Null, means)),
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

fn op(of: &OpShare) -> Data {
    let calls = |thousandths: i64| Data::Number(thousandths as f64 / 1e3);
    let calls = [
        ("typical", calls(of.calls.typical)),
        ("tail", calls(of.calls.tail)),
    ];
    Data::fields([
        ("name", (&*of.name).into()),
        ("per_request_ns", means(of.wall)),
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

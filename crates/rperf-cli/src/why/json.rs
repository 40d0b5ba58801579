//! The answers of `rperf why` as JSON. Times are in nanoseconds.

use rperf_model::{LatencyClass, Profile, Requests};
use rperf_report::{
    Collections, EndpointTimes, Function, Holder, Means, OpShare, OpTimes, Part, Repeat, Site,
    Sort, Why,
};
use serde_json::{Map, Value, json};

/// The version of the fields, whose meanings docs/guide/json.md has.
const VERSION: u32 = 1;

/// All endpoints, and why the first ones are slow.
pub fn endpoints(profile: &Profile, all: &[EndpointTimes<'_>], first: &[Why<'_>]) -> Value {
    let ops = OpTimes::of(profile, Sort::SelfValue);
    let repeats = ops.map_or_else(Vec::new, |it| it.repeats);
    let causes = first
        .iter()
        .flat_map(|why| why.causes().into_iter().map(move |part| cause(why, part)));
    json!({
        "version": VERSION,
        "endpoints": all.iter().map(times).collect::<Vec<_>>(),
        "causes": causes.collect::<Vec<_>>(),
        "repeats": repeats.iter().map(repeat).collect::<Vec<_>>(),
    })
}

fn cause(why: &Why<'_>, part: Part) -> Value {
    let Requests {
        key: label, name, ..
    } = why.times.requests;
    let holders = match part {
        Part::GvlWait => why.main_holders(),
        _ => Vec::new(),
    };
    json!({
        "key": label, "name": name, "state": key(part), "share": why.times.share(part),
        "per_request_ns": means(why.times.parts[part as usize]),
        "site": why.sites[part as usize].first().map(site),
        "mostly_in": why.mostly_in(part).map(|it| &it.label),
        "holders": holders.into_iter().map(|it| holder(why, it)).collect::<Vec<_>>(),
        "collections": match part {
            Part::Gc => collections(why),
            _ => Vec::new(),
        },
    })
}

fn collections(why: &Why<'_>) -> Vec<Value> {
    let of = |it: &Collections| {
        json!({
            "cause": it.cause, "share": why.share_of_collections(it), "per_request_ns": means(it.means),
        })
    };
    why.collections.iter().map(of).collect()
}

/// An endpoint, and why it is slow.
pub fn endpoint(why: &Why<'_>) -> Value {
    let mut object = times(&why.times);
    let sites = Part::ALL.map(|part| {
        let sites = why.sites[part as usize].iter().map(site);
        (key(part), sites.collect::<Value>())
    });
    let more = [
        ("version", json!(VERSION)),
        ("enough", json!(why.has_enough())),
        ("objects", json!(why.objects.map(means))),
        ("sites", sites.into_iter().collect()),
        (
            "holders",
            json!(
                why.holders
                    .as_ref()
                    .map(|all| all.iter().map(|it| holder(why, it)).collect::<Vec<_>>())
            ),
        ),
        ("collections", json!(collections(why))),
        ("unknown_share", json!(why.share_unknown())),
        ("blame_ns", json!(why.blame)),
        ("open_ns", json!(why.open_ns)),
        ("ops", why.ops.iter().map(op).collect()),
        (
            "slowest",
            why.slowest
                .iter()
                .map(|it| {
                    let values = it.took.values;
                    json!({
                        "request": it.label, "ended_at_ns": it.took.ended_ns, "wall_ns": values.wall,
                        "running_ns": values.running, "gvl_wait_ns": values.gvl_wait,
                        "blocked_ns": values.blocked, "gc_ns": values.gc,
                        "suspended_ns": values.suspended, "objects": values.objects,
                    })
                })
                .collect(),
        ),
    ];
    if let Some(object) = object.as_object_mut() {
        object.extend(more.map(|(key, value)| (key.to_string(), value)));
    }
    object
}

fn key(part: Part) -> String {
    format!("{}_ns", part.name().to_lowercase().replace(' ', "_"))
}

fn times(of: &EndpointTimes<'_>) -> Value {
    let Requests {
        key: label,
        name,
        walls,
        ..
    } = of.requests;
    let classes = LatencyClass::ALL.into_iter().take(LatencyClass::ENDED);
    let classes: Map<String, Value> = classes
        .map(|class| (class.name().into(), of.requests.class(class).count.into()))
        .collect();
    let parts: Map<String, Value> = Part::ALL
        .into_iter()
        .map(|part| (key(part), means(of.parts[part as usize])))
        .collect();
    json!({
        "key": label, "name": name, "requests": of.requests.count(), "classes": classes,
        "p50_ns": walls.quantile(500), "p95_ns": walls.quantile(950),
        "p99_ns": walls.quantile(990), "max_ns": walls.max(),
        "excess_ns": of.excess(), "means": parts,
    })
}

fn means(of: Means) -> Value {
    json!({ "typical": of.typical, "tail": of.tail, "difference": of.excess() })
}

fn function(of: &Option<Function>) -> Value {
    let of = of.as_ref();
    of.map_or(
        Value::Null,
        |it| json!({ "name": it.name, "path": it.short_path }),
    )
}

fn app(of: &Option<(Function, u32)>) -> Value {
    let of = of.as_ref();
    of.map_or(
        Value::Null,
        |(it, line)| json!({ "name": it.name, "path": it.short_path, "line": line }),
    )
}

fn site(of: &Site) -> Value {
    json!({ "method": function(&of.method), "app": app(&of.app), "per_request_ns": means(of.means) })
}

fn repeat(of: &Repeat) -> Value {
    json!({
        "key": of.endpoint.0, "endpoint": of.endpoint.1, "name": of.name, "calls": of.sums.calls,
        "requests": of.sums.requests, "repeated": of.sums.repeated,
        "endpoint_requests": of.requests, "own_ns": of.sums.own_ns(), "app": app(&of.app),
    })
}

fn op(of: &OpShare) -> Value {
    json!({
        "name": of.name, "per_request_ns": means(of.wall), "repeated_percent": of.repeated_percent,
        "calls": { "typical": of.calls.typical as f64 / 1e3, "tail": of.calls.tail as f64 / 1e3 },
        "app": app(&of.app),
    })
}

fn holder(why: &Why<'_>, of: &Holder) -> Value {
    json!({
        "name": of.name, "share": why.share_of(of), "blame_ns": of.blame, "per_request_ns": of.means.map(means),
        "method": function(&of.method), "app": app(&of.app),
    })
}

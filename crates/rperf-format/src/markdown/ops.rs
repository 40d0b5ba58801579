//! The ops in Markdown: each of them, and those that requests call again and again. Any thread.

use super::part::Part;
use super::text::{Table, app, code, endpoint};
use crate::heads::{Times, ops_head, repeats_head};
use rperf_model::{LatencyClass, Profile};
use rperf_report::numbers::{grouped, percent};
use rperf_report::{Op, OpTimes, Repeat, Sort};

/// The ops; nothing without any.
pub(super) fn ops(part: &Part<'_>) -> String {
    let Some(found) = OpTimes::of(part.report.profile, part.sort) else {
        return String::new();
    };
    let times = Times::up_to(found.total.wall_ns);
    let states: Vec<_> = found.states(&found.total).iter().map(|it| it.0).collect();
    let sorts_by_total = part.sort == Sort::TotalValue;
    let mut headings = vec!["time"];
    headings.extend(sorts_by_total.then_some("total"));
    headings.push("calls");
    headings.extend(states);
    headings.extend(["p50", "p99", "objects"]);
    let numbers = headings.len();
    headings.extend(["op", "at"]);
    let mut table = Table::new(&headings, numbers);
    for Op {
        name,
        sums,
        app: at,
    } in part.shown(&found.ops)
    {
        let mut cells = vec![times.text(sums.own_ns())];
        cells.extend(sorts_by_total.then(|| times.text(sums.wall_ns)));
        cells.push(grouped(sums.calls));
        cells.extend(found.states(sums).into_iter().map(|it| times.text(it.1)));
        cells.extend([500, 990].map(|at| times.text(sums.blocked.quantile(at))));
        cells.push(sums.objects.map_or_else(|| "-".into(), grouped));
        cells.extend([code(name), app(at)]);
        table.row(cells);
    }
    let head = ops_head(&found);
    let total = match sorts_by_total {
        true => " *total*: with the ops inside of it.",
        false => "",
    };
    let text = format!("{head}*p50*, *p99*: how long a call is blocked, to 6 %.{total}");
    let mut ops = part.section("Ops", &text, &table.text(), found.ops.len());
    if !found.repeats.is_empty() {
        let table = repeats(part.report.profile, &found, part.limit);
        let text = format!(
            "{}. Calls and times are those of a request that calls it.",
            repeats_head()
        );
        let repeats = part.section(REPEATS, &text, &table, found.repeats.len());
        ops += &format!("\n{repeats}");
    }
    ops
}

/// The title of repeated ops.
pub(super) const REPEATS: &str = "Ops that requests call again and again";

/// The table of repeated ops, up to `limit`: of requests that call them. What typical requests and those of the tail
/// have is told where requests were judged. Times have the unit that those of all ops have, wherever the table is.
pub(super) fn repeats(profile: &Profile, found: &OpTimes, limit: Option<usize>) -> String {
    let times = Times::up_to(found.total.wall_ns);
    let are_judged = !profile.requests.is_empty();
    let mut headings = vec!["calls", "time", "repeated by"];
    if are_judged {
        headings.extend(["calls, typical", "calls, tail"]);
    }
    let numbers = headings.len();
    headings.extend(["endpoint", "op", "at"]);
    let mut table = Table::new(&headings, numbers);
    for it in found.repeats.iter().take(limit.unwrap_or(usize::MAX)) {
        let (key, name) = &it.endpoint;
        let count = it.sums.requests.max(1);
        let mut cells = vec![
            format!("{:.1}", it.sums.calls as f64 / count as f64),
            times.text(it.sums.own_ns() / count),
            format!("{:.0}%", percent(it.sums.repeated, it.requests)),
        ];
        if are_judged {
            cells.extend(calls_by_class(profile, it));
        }
        cells.extend([endpoint(key, name), code(&it.name), app(&it.app)]);
        table.row(cells);
    }
    table.text()
}

/// The calls of a typical request, and of one of the tail.
fn calls_by_class(profile: &Profile, of: &Repeat) -> [String; 2] {
    let (key, name) = &of.endpoint;
    let mut all = profile.requests.iter();
    let requests = all.find(|it| it.key == *key && it.name == *name);
    [LatencyClass::Typical, LatencyClass::Tail].map(|class| {
        let count = requests.map_or(0, |it| it.class(class).count);
        let calls = of.sums.classes.get(class as usize);
        let calls = calls.map_or(0, |it| it.calls);
        match count {
            0 => "-".into(),
            count => format!("{:.1}", calls as f64 / count as f64),
        }
    })
}

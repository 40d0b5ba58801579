//! Why slow requests are slow, in Markdown: states first, then where they were. Called by `rperf why`; any
//! thread.

use super::ops::{self, REPEATS};
use super::program;
use super::text::{Table, app, code, endpoint, place};
use crate::heads::{Spelling, part_detail, part_name, repeats_head};
use rperf_model::{LatencyClass, OpSums, Profile, Requests};
use rperf_report::numbers::{counted, grouped, milliseconds, milliseconds_more, plus};
use rperf_report::{
    EndpointTimes, Function, OpShare, OpTimes, Part, Site, SlowRequest, Sort, Why, losses_line,
};

/// The parts that the table of endpoints has.
const SHOWN: [Part; 4] = [Part::Running, Part::GvlWait, Part::Blocked, Part::Gc];

/// Repeated ops of all endpoints that are told.
const TOLD_REPEATS: usize = 5;

/// Ops of an endpoint that are told.
const TOLD_OPS: usize = 10;

/// All endpoints, and above them why the `first` ones are slow.
pub fn markdown_of_endpoints(
    profile: &Profile,
    all: &[EndpointTimes<'_>],
    first: &[Why<'_>],
) -> String {
    let title = match &*program(profile) {
        "" => "## Slow requests\n".to_string(),
        program => format!("## Slow requests of {}\n", code(program)),
    };
    let mut parts = vec![title];
    parts.extend(first.iter().map(causes));
    parts.push(repeats(profile));
    parts.push(endpoints(all));
    parts.push(lost(profile));
    joined(parts)
}

/// An endpoint, and why it is slow.
pub fn markdown_of_endpoint(profile: &Profile, why: &Why<'_>) -> String {
    let requests = why.times.requests;
    let walls = &requests.walls;
    let [p50, p95, p99] = [500, 950, 990].map(|at| ms(walls.quantile(at)));
    let title = format!(
        "## Slow requests of {}\n\n{}: p50 {p50}, p95 {p95}, p99 {p99}, max {}\n",
        endpoint(&requests.key, &requests.name),
        counted(requests.count(), "request"),
        ms(walls.max())
    );
    let mut parts = vec![title];
    if !why.has_enough() {
        parts.push(few(why));
        parts.push(slowest(why));
    }
    if has(why, LatencyClass::Tail) && has(why, LatencyClass::Typical) {
        parts.push(states(why));
        parts.push(holders(why));
        parts.extend([Part::Blocked, Part::Running, Part::Gc].map(|part| sites(why, part)));
        parts.push(collections(why));
    }
    parts.push(ops_of(why));
    if why.has_enough() {
        parts.push(slowest(why));
    }
    if why.open_ns > 0 {
        parts.push(format!(
            "{} of requests that had not ended, or had no room, are left out.\n",
            ms(why.open_ns)
        ));
    }
    parts.push(lost(profile));
    joined(parts)
}

fn joined(parts: Vec<String>) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
    parts.join("\n")
}

fn ms(ns: impl Into<i128>) -> String {
    format!("{} ms", milliseconds(ns))
}

fn has(why: &Why<'_>, class: LatencyClass) -> bool {
    why.times.requests.class(class).count > 0
}

/// What the slowest requests of an endpoint take longer, and where most of it is.
fn causes(why: &Why<'_>) -> String {
    let Requests { key, name, .. } = why.times.requests;
    let tail = why.times.requests.class(LatencyClass::Tail).count;
    let few = match why.has_enough() {
        true => String::new(),
        false => format!(" They are few: from {} on this can be relied on.", Why::FEW),
    };
    let causes = why.causes().into_iter().map(|part| {
        let place = match part_detail(why, part, &InCode) {
            it if it.is_empty() => it,
            it => format!(": {it}"),
        };
        let share = why.times.share(part);
        format!("- {share:.0}% {}{place}\n", part_name(why, part))
    });
    format!(
        "### {}\n\n{}, {} ms each.{few}\n\n{}",
        endpoint(key, name),
        counted(tail, "slowest request"),
        milliseconds_more(why.times.excess()),
        causes.collect::<String>()
    )
}

fn repeats(profile: &Profile) -> String {
    let ops = OpTimes::of(profile, Sort::SelfValue);
    let Some(ops) = ops.filter(|it| !it.repeats.is_empty()) else {
        return String::new();
    };
    let table = ops::repeats(profile, &ops, Some(TOLD_REPEATS));
    format!("### {REPEATS}\n\n{}.\n\n{table}", repeats_head())
}

fn endpoints(all: &[EndpointTimes<'_>]) -> String {
    let mut headings = vec!["requests", "p50", "p95", "p99", "max"];
    headings.extend(SHOWN.map(Part::name));
    let numbers = headings.len();
    headings.push("endpoint");
    let mut table = Table::new(&headings, numbers);
    for it in all {
        let Requests {
            key, name, walls, ..
        } = it.requests;
        let mut cells = vec![grouped(it.requests.count())];
        cells.extend([500, 950, 990].map(|at| ms(walls.quantile(at))));
        cells.push(ms(walls.max()));
        cells.extend(SHOWN.map(|part| match it.excess() {
            ..=0 => "-".to_string(),
            _ => format!("{:.0}%", it.share(part)),
        }));
        cells.push(endpoint(key, name));
        table.row(cells);
    }
    format!(
        "### All endpoints and jobs\n\n*running*, *GVL wait*, *blocked* and *GC* are shares of the time by which \
         the slowest requests (from p99) take longer than typical ones (p25 to p75). The endpoints whose slowest \
         requests cost most come first.\n\n{}",
        table.text()
    )
}

fn few(why: &Why<'_>) -> String {
    let requests = why.times.requests;
    if requests.class(LatencyClass::First).count == requests.count() {
        return "No request was judged: the first 100 of an endpoint tell how long they usually take.\n".into();
    }
    let tail = requests.class(LatencyClass::Tail).count;
    format!(
        "The tail has {} only: from {} on the comparison can be relied on.\n",
        counted(tail, "request"),
        Why::FEW
    )
}

fn slowest(why: &Why<'_>) -> String {
    let mut headings = vec!["wall", "running", "GVL wait", "blocked", "GC", "objects"];
    let numbers = headings.len();
    // Requests that weren't judged have no label.
    let have_labels = why.slowest.iter().any(|it| it.label.is_some());
    headings.extend(have_labels.then_some("%request"));
    let mut table = Table::new(&headings, numbers);
    for SlowRequest { took, label, .. } in &why.slowest {
        let it = took.values;
        let times = [it.wall, it.running, it.gvl_wait, it.blocked, it.gc];
        let mut cells: Vec<_> = times.map(ms).into();
        cells.push(grouped(it.objects));
        cells.extend(have_labels.then(|| label.as_deref().map_or_else(|| "-".into(), code)));
        table.row(cells);
    }
    format!("### The slowest requests\n\n{}", table.text())
}

/// States first: the stacks of a request that waits for others look innocent.
fn states(why: &Why<'_>) -> String {
    let headings = ["typical", "tail", "difference", "per request", "where"];
    let mut table = Table::new(&headings, 3);
    for part in Part::ALL {
        let means = why.times.parts[part as usize];
        if part == Part::Suspended && means.typical == 0 && means.tail == 0 {
            continue;
        }
        let excess = means.excess();
        table.row([
            ms(means.typical),
            ms(means.tail),
            format!("{} ms", milliseconds_more(excess)),
            part_name(why, part),
            part_detail(why, part, &InCode),
        ]);
    }
    if let Some(objects) = why.objects {
        let excess = objects.excess();
        table.row([
            grouped(objects.typical),
            grouped(objects.tail),
            format!("{}{}", plus(excess), grouped(excess)),
            "objects".into(),
            String::new(),
        ]);
    }
    let text = "*typical*: the mean of the requests from p25 to p75; *tail*: of those from p99.";
    format!("### What they have\n\n{text}\n\n{}", table.text())
}

/// Names and places as code.
struct InCode;

impl Spelling for InCode {
    fn name(&self, name: &str) -> String {
        code(name)
    }

    fn place(&self, method: &Option<Function>, app: &Option<(Function, u32)>) -> String {
        place(method, app)
    }

    fn percent(&self, share: f64) -> String {
        format!("{share:.0}%")
    }
}

fn holders(why: &Why<'_>) -> String {
    if !why.has_grown(Part::GvlWait) {
        return String::new();
    }
    let holders = match &why.holders {
        None => {
            return "Who had the GVL meanwhile isn't known: it is with `--measure requests,blame`.\n".into();
        }
        Some(holders) if holders.is_empty() => {
            return "Who had the GVL meanwhile isn't known: no sample fell into these waits.\n"
                .into();
        }
        Some(holders) => holders,
    };
    let are_own = holders.iter().any(|it| it.means.is_some());
    let (title, mut headings) = match are_own {
        true => (
            "Who had the GVL while these requests waited for it, per request, by samples",
            vec!["typical", "tail", "share"],
        ),
        false => (
            "Who had the GVL while others waited for it, whoever they were, in the whole profile",
            vec!["waits", "share"],
        ),
    };
    let numbers = headings.len();
    headings.extend(["who", "in"]);
    let mut table = Table::new(&headings, numbers);
    for it in holders {
        let share = why.share_of(it);
        if share < Why::LEAST_PERCENT {
            continue;
        }
        let mut cells = match it.means {
            Some(means) => vec![ms(means.typical), ms(means.tail)],
            None => vec![ms(it.blame)],
        };
        let is_method = |method: &Function| method.name == it.name;
        cells.extend([
            format!("{share:.0}%"),
            code(&it.name),
            match it.method.as_ref().is_some_and(is_method) {
                true => String::new(),
                false => place(&it.method, &it.app),
            },
        ]);
        table.row(cells);
    }
    if let Some(share) = why.share_unknown().filter(|it| *it >= Why::LEAST_PERCENT) {
        let nobody = "nobody, or many for a short time each";
        let cells = ["", "", &format!("{share:.0}%"), "not known", nobody];
        table.row(cells.map(String::from));
    }
    format!("### {title}\n\n{}", table.text())
}

/// Where a part grew, by samples.
fn sites(why: &Why<'_>, part: Part) -> String {
    let sites = &why.sites[part as usize];
    if !why.has_grown(part) || sites.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["typical", "tail", "at"], 2);
    for Site { method, app, means } in sites {
        table.row([ms(means.typical), ms(means.tail), place(method, app)]);
    }
    format!(
        "### Where {} grew most per request, by samples\n\n{}",
        part.name(),
        table.text()
    )
}

/// Why collections ran.
fn collections(why: &Why<'_>) -> String {
    if !why.has_grown(Part::Gc) || why.collections.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["typical", "tail", "share", "cause"], 3);
    for it in &why.collections {
        table.row([
            ms(it.means.typical),
            ms(it.means.tail),
            format!("{:.0}%", why.share_of_collections(it)),
            code(&it.cause),
        ]);
    }
    format!(
        "### Why these collections ran, per request, by samples\n\n{}",
        table.text()
    )
}

/// The ops of an endpoint: those with most time, and others that requests repeat.
fn ops_of(why: &Why<'_>) -> String {
    if why.ops.is_empty() {
        return String::new();
    }
    let classes = [LatencyClass::Typical, LatencyClass::Tail];
    let [has_typical, has_tail] = classes.map(|class| has(why, class));
    let headings = [
        "typical",
        "tail",
        "calls, typical",
        "calls, tail",
        "repeated by",
        "op",
        "at",
    ];
    let mut table = Table::new(&headings, 5);
    let (first, others) = why.ops.split_at(why.ops.len().min(TOLD_OPS));
    let others = others.iter().filter(|it| it.repeated_percent.is_some());
    for it in first.iter().chain(others.take(TOLD_OPS)) {
        let OpShare { wall, calls, .. } = it;
        let count = |thousandths: i64| format!("{:.1}", thousandths as f64 / 1e3);
        let cells = [
            (has_typical, ms(wall.typical)),
            (has_tail, ms(wall.tail)),
            (has_typical, count(calls.typical)),
            (has_tail, count(calls.tail)),
        ];
        let cells = cells.map(|(is_known, text)| if is_known { text } else { "-".into() });
        let repeated = it.repeated_percent.map(|percent| format!("{percent:.0}%"));
        let names = [repeated.unwrap_or_default(), code(&it.name), app(&it.app)];
        table.row(cells.into_iter().chain(names));
    }
    let text = format!(
        "By exact sums of all calls, with the ops inside of each. Those that took most without them come first, by \
         their part in all calls. *repeated by*: how many requests call it {} times or more, if these are one in ten \
         at least (N+1).",
        OpSums::REPEATED
    );
    format!(
        "### What its ops took, per request\n\n{text}\n\n{}",
        table.text()
    )
}

/// A line about what the profile lacks.
fn lost(profile: &Profile) -> String {
    let line = losses_line(&profile.meta.counters);
    line.map_or_else(String::new, |line| format!("{line}\n"))
}

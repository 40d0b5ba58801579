//! The ops of slow requests, and those that requests call again and again, for people.

use super::heading::heading;
use crate::places::line;
use crate::report::screen::{Screen, Style};
use rperf_format::table::{Column, Row, Table};
use rperf_model::{LatencyClass, OpSums, Profile, Requests};
use rperf_report::numbers::milliseconds;
use rperf_report::one_line::{endpoint_name, one_line};
use rperf_report::{OpShare, OpTimes, Repeat, Sort, Why};

/// Ops of an endpoint that are told, and others that are repeated.
const OPS: usize = 5;

/// Slow requests that call an op so many times as often as typical ones do many more of these calls.
const MANY_MORE: f64 = 1.5;

/// Repeated ops of all endpoints that are told.
const REPEATS: usize = 3;

/// The ops that requests call again and again, those first that cost most in all.
pub fn repeats(profile: &Profile, screen: Screen) -> String {
    let times = OpTimes::of(profile, Sort::SelfValue);
    let repeats = times.map_or_else(Vec::new, |it| it.repeats);
    let mut text = String::new();
    for it in repeats.iter().take(REPEATS) {
        let Repeat {
            endpoint: (key, endpoint),
            name,
            sums,
            app,
            ..
        } = it;
        let requests = sums.requests.max(1);
        let title = screen.styled(Some(Style::Bold), &endpoint_name(key, endpoint));
        let mut endpoints = profile.requests.iter();
        let of_endpoint = endpoints.find(|it| it.key == *key && it.name == *endpoint);
        text += &format!(
            "{title}   {:.1} calls of one op in a request (N+1), {} ms a request{}\n",
            sums.calls as f64 / requests as f64,
            milliseconds(sums.own_ns() / requests),
            of_endpoint.map_or_else(String::new, |it| more_in_the_tail(it, sums)),
        );
        let at = match line(app) {
            at if at.is_empty() => at,
            at => format!(", in {at}"),
        };
        text += &screen.wrapped(&format!("  {}{at}\n", one_line(name)));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// How many calls slow requests have, if that is many more than typical ones have.
fn more_in_the_tail(requests: &Requests, sums: &OpSums) -> String {
    let classes = [LatencyClass::Typical, LatencyClass::Tail];
    let [typical, tail] = classes.map(|class| {
        let calls = sums.classes.get(class as usize)?.calls;
        let count = requests.class(class).count;
        (count > 0).then(|| calls as f64 / count as f64)
    });
    match (typical, tail) {
        (Some(typical), Some(tail)) if tail >= MANY_MORE * typical => {
            format!("; {typical:.1} calls in a typical one, {tail:.1} in one of the slowest")
        }
        _ => String::new(),
    }
}

/// What the ops of an endpoint took, and those that it calls again and again.
pub fn of_endpoint(why: &Why<'_>, screen: Screen) -> String {
    let names = ["typical", "tail", "calls", "tail"];
    let mut table =
        Table::new(names.map(Column::new)).with_names("op, per request, with the ops inside");
    let requests = why.times.requests;
    let has = |class| requests.class(class).count > 0;
    let [has_typical, has_tail] = [LatencyClass::Typical, LatencyClass::Tail].map(has);
    let mut has_repeats = false;
    let is_repeated = |it: &OpShare| it.repeated_percent.is_some();
    let (first, others) = why.ops.split_at(why.ops.len().min(OPS));
    let others = others.iter().filter(|it| is_repeated(it));
    for it in first.iter().chain(others.take(OPS)) {
        let ms = |ns: i64| format!("{} ms", milliseconds(ns));
        let calls = |thousandths: i64| format!("{:.1}", thousandths as f64 / 1e3);
        has_repeats |= is_repeated(it);
        let mark = is_repeated(it).then(|| "N+1".to_owned());
        let at = Some(line(&it.app)).filter(|it| !it.is_empty());
        table.push(Row {
            cells: [
                (has_typical, ms(it.wall.typical)),
                (has_tail, ms(it.wall.tail)),
                (has_typical, calls(it.calls.typical)),
                (has_tail, calls(it.calls.tail)),
            ]
            .map(|(is_known, text)| if is_known { text } else { "-".into() })
            .into(),
            name: one_line(&it.name).into_owned(),
            detail: mark.into_iter().chain(at).collect::<Vec<_>>().join("  "),
            needs_detail: true,
            ..Row::default()
        });
    }
    if why.ops.is_empty() {
        return String::new();
    }
    let mut text = heading(screen, "What its ops took, by exact sums of all calls");
    text += &screen.table(&table);
    if !has_typical && !has_tail {
        text += "No request was judged; 'rperf report --ops' has the sums of all calls.\n";
    }
    if has_repeats {
        text += &screen.wrapped(
            "N+1: one request of ten at least calls it 5 times or more; one query for all would do, most \
             likely.\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::{OpCalls, RequestValues};

    #[test]
    fn many_more_calls_of_slow_requests_are_told() {
        let told = |of_tail: u64| {
            let mut requests = Requests::new("endpoint", "GET /orders");
            let mut sums = OpSums::default();
            for (class, count, calls) in [
                (LatencyClass::Typical, 50, 250),
                (LatencyClass::Tail, 2, of_tail),
            ] {
                for _ in 0..count {
                    requests.add(class, RequestValues::default().ended_at(1), true);
                }
                sums.classes[class as usize] = OpCalls { calls, wall_ns: 0 };
            }
            more_in_the_tail(&requests, &sums)
        };
        assert_eq!(
            told(285),
            "; 5.0 calls in a typical one, 142.5 in one of the slowest"
        );
        assert_eq!(told(12), "");
        let none = more_in_the_tail(&Requests::new("endpoint", "GET /"), &OpSums::default());
        assert_eq!(none, "", "nothing was judged");
    }
}

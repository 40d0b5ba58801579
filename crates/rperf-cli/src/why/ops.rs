//! The ops of slow requests, and those that requests call again and again, for people.

use super::heading::heading;
use crate::places::{endpoint_name, line};
use crate::report::screen::{Screen, Style};
use rperf_format::table::{Column, Row, Table};
use rperf_model::{LatencyClass, Profile};
use rperf_report::numbers::milliseconds;
use rperf_report::one_line::one_line;
use rperf_report::{OpShare, OpTimes, Repeat, Sort, Why};

/// Ops of an endpoint that are told, and others that are repeated.
const OPS: usize = 5;

/// Repeated ops of all endpoints that are told.
const REPEATS: usize = 3;

/// The ops that requests call again and again, those first that cost most in all.
pub fn repeats(profile: &Profile, screen: Screen) -> String {
    let times = OpTimes::of(profile, Sort::SelfValue);
    let repeats = times.map_or_else(Vec::new, |it| it.repeats);
    let mut text = String::new();
    for it in repeats.iter().take(REPEATS) {
        let Repeat {
            name, sums, app, ..
        } = it;
        let requests = sums.requests.max(1);
        let title = screen.styled(
            Some(Style::Bold),
            &endpoint_name(&it.endpoint.0, &it.endpoint.1),
        );
        text += &format!(
            "{title}   {:.1} calls of one op in a request (N+1), {} ms a request\n",
            sums.calls as f64 / requests as f64,
            milliseconds(i64::try_from(sums.own_ns() / requests).unwrap_or(i64::MAX)),
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

/// What the ops of an endpoint took, and those that it calls again and again.
pub fn of_endpoint(why: &Why<'_>, screen: Screen) -> String {
    let names = ["typical", "tail", "calls", "tail"];
    let mut table = Table::new(names.map(Column::new)).with_names("op, per request");
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
        let mark = if is_repeated(it) { "N+1  " } else { "" };
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
            detail: format!("{mark}{}", line(&it.app)),
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

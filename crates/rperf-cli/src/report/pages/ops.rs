//! The ops as text: each of them, and those that a request calls again and again.

use super::Page;
use crate::places::line;
use crate::report::screen::Style;
use rperf_format::table::{Column, Row, Table};
use rperf_format::{Times, ops_head, repeats_head};
use rperf_report::numbers::{grouped, percent};
use rperf_report::one_line::{endpoint_name, one_line};
use rperf_report::{Op, OpTimes, Repeat, Sort};

/// The ops.
pub fn ops(page: &Page<'_>, sort: Sort) -> String {
    let mut text = page.head();
    let Some(times) = OpTimes::of(page.profile, sort) else {
        return text;
    };
    let part = Part {
        page,
        scale: Times::up_to(times.total.wall_ns),
        times: &times,
        sort,
    };
    text += &page.screen.wrapped(&ops_head(&times));
    text += &part.ops();
    text += &part.repeats();
    text
}

/// A table of the page.
struct Part<'a> {
    page: &'a Page<'a>,
    scale: Times,
    times: &'a OpTimes,
    sort: Sort,
}

impl Part<'_> {
    fn ops(&self) -> String {
        let sorts_by_total = self.sort == Sort::TotalValue;
        let mut columns = vec![Column::new("time")];
        columns.extend(sorts_by_total.then(|| Column::new("total")));
        columns.push(Column::new("calls"));
        columns.extend(
            self.times
                .states(&self.times.total)
                .into_iter()
                .map(|(name, _)| Column::weighing(name, 3)),
        );
        columns.extend(["p50", "p99"].map(|it| Column::weighing(it, 4)));
        columns.push(Column::weighing("objects", 1));
        let mut table = Table::new(columns).with_names("op");
        for op in self.page.shown(&self.times.ops) {
            let Op { name, sums, app } = op;
            let mut cells = vec![self.time(sums.own_ns())];
            cells.extend(sorts_by_total.then(|| self.time(sums.wall_ns)));
            cells.push(grouped(sums.calls));
            cells.extend(
                self.times
                    .states(sums)
                    .into_iter()
                    .map(|it| self.time(it.1)),
            );
            cells.extend([500, 990].map(|at| self.time(sums.blocked.quantile(at))));
            cells.push(sums.objects.map_or_else(|| "-".into(), grouped));
            table.push(Row {
                cells,
                style: Style::of_share(percent(sums.own_ns(), self.times.total.wall_ns)),
                name: one_line(name).into_owned(),
                detail: line(app),
                ..Row::default()
            });
        }
        let title = match sorts_by_total {
            true => {
                "Ops (total: with the ops inside of it; p50, p99: how long a call is blocked, to 6 %)"
            }
            false => "Ops (p50, p99: how long a call is blocked, to 6 %)",
        };
        self.section(title, &table, self.times.ops.len())
    }

    fn repeats(&self) -> String {
        if self.times.repeats.is_empty() {
            return String::new();
        }
        let columns = ["calls", "time", "of requests"].map(Column::new);
        let mut table = Table::new(columns).with_names("per request that calls it");
        for it in self.page.shown(&self.times.repeats) {
            table.push(Row {
                cells: repeat_cells(it, |ns| self.time(ns)),
                name: format!(
                    "{}: {}",
                    endpoint_name(&it.endpoint.0, &it.endpoint.1),
                    one_line(&it.name)
                ),
                detail: line(&it.app),
                needs_detail: true,
                ..Row::default()
            });
        }
        self.section(&repeats_head(), &table, self.times.repeats.len())
    }

    fn section(&self, title: &str, table: &Table, all: usize) -> String {
        let title = self.page.screen.wrapped(title);
        self.page.section(title.trim_end(), table, all)
    }

    fn time(&self, ns: u64) -> String {
        self.scale.text(ns)
    }
}

/// What a request has of a repeated op: calls and time in the mean, and how many requests repeat it.
fn repeat_cells(of: &Repeat, time: impl Fn(u64) -> String) -> Vec<String> {
    let requests = of.sums.requests.max(1);
    let calls = of.sums.calls as f64 / requests as f64;
    vec![
        format!("{calls:.1}"),
        time(of.sums.own_ns() / requests),
        format!("{:.0} %", percent(of.sums.repeated, of.requests)),
    ]
}

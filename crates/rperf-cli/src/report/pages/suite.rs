//! The tests of a suite as text: the slowest ones, their files, factories, gems and ops.

use super::Page;
use crate::report::screen::Style;
use rperf_format::table::{Column, Row, Table};
use rperf_format::{Times, tests_head};
use rperf_report::numbers::{grouped, percent};
use rperf_report::one_line::one_line;
use rperf_report::{FURTHER_TESTS, Sort, Test, Tests};

/// The tests.
pub fn suite(page: &Page<'_>, sort: Sort) -> String {
    let mut text = page.head();
    let Some(tests) = Tests::of(page.profile, sort) else {
        return text;
    };
    let part = Part {
        page,
        scale: Times::up_to(tests.total.wall_ns),
        tests: &tests,
    };
    text += &page.screen.wrapped(&tests_head(&tests, name));
    text += &part.examples();
    text += &part.files();
    text += &part.factories();
    text += &part.gems();
    text += &part.ops();
    text
}

/// A table of the page.
struct Part<'a> {
    page: &'a Page<'a>,
    scale: Times,
    tests: &'a Tests,
}

impl Part<'_> {
    fn examples(&self) -> String {
        let runs_again = self
            .tests
            .examples
            .iter()
            .any(|it| !it.name.is_empty() && it.sums.count > 1);
        let mut columns = vec![Column::new("total")];
        if runs_again {
            columns.push(Column::weighing("runs", 5));
        }
        columns.extend(self.state_columns());
        columns.push(Column::weighing("objects", 3));
        let mut table = Table::new(columns).with_names("test");
        for test in self.page.shown(&self.tests.examples) {
            let sums = &test.sums;
            let mut cells = vec![self.time(sums.wall_ns)];
            if runs_again {
                cells.push(grouped(sums.count));
            }
            cells.extend(
                self.tests
                    .states(sums)
                    .into_iter()
                    .map(|it| self.time(it.1)),
            );
            cells.push(sums.objects.map_or_else(|| "-".into(), grouped));
            table.push(Row {
                cells,
                style: self.style(sums.wall_ns),
                name: name(test),
                detail: one_line(&sums.title).into_owned(),
                ..Row::default()
            });
        }
        self.page
            .section("Slowest tests", &table, self.tests.examples.len())
    }

    fn files(&self) -> String {
        let mut columns = vec![
            Column::new("total"),
            Column::weighing("total%", 5),
            Column::new("tests"),
            Column::weighing("hooks", 4),
        ];
        columns.extend(self.state_columns());
        let mut table = Table::new(columns).with_names("file");
        for file in self.page.shown(&self.tests.files) {
            let sums = &file.sums;
            let mut cells = vec![
                self.time(sums.wall_ns),
                format!("{:.1}%", self.share(sums.wall_ns)),
                grouped(file.tests),
                self.time(file.hooks_ns),
            ];
            cells.extend(
                self.tests
                    .states(sums)
                    .into_iter()
                    .map(|it| self.time(it.1)),
            );
            table.push(Row {
                cells,
                style: self.style(sums.wall_ns),
                name: one_line(&file.name).into_owned(),
                ..Row::default()
            });
        }
        let title = "Files (hooks: what runs beside tests, such as before(:all))";
        self.page.section(title, &table, self.tests.files.len())
    }

    fn factories(&self) -> String {
        if self.tests.factories.is_empty() {
            return String::new();
        }
        let columns = [
            Column::new("own"),
            Column::new("total"),
            Column::new("runs"),
            Column::new("top-level"),
            Column::weighing("objects", 1),
        ];
        let mut table = Table::new(columns).with_names("factory");
        for factory in self.page.shown(&self.tests.factories) {
            let sums = &factory.sums;
            table.push(Row {
                cells: vec![
                    self.time(sums.own_ns),
                    self.time(sums.wall_ns),
                    grouped(sums.count),
                    grouped(sums.top_level),
                    sums.objects.map_or_else(|| "-".into(), grouped),
                ],
                style: self.style(sums.own_ns),
                name: match &*factory.name {
                    "" => "(further factories)".into(),
                    name => one_line(name).into_owned(),
                },
                ..Row::default()
            });
        }
        let title = "Factories (own: without those that they call; top-level: called by no other)";
        self.page.section(title, &table, self.tests.factories.len())
    }

    fn gems(&self) -> String {
        if self.tests.gems.is_empty() {
            return String::new();
        }
        let scale = self.page.scale();
        let columns = [Column::new("total"), Column::new("self")];
        let mut table = Table::new(columns).with_names("gem");
        for gem in self.page.shown(&self.tests.gems) {
            table.push(Row {
                cells: vec![scale.text(gem.total), scale.text(gem.own)],
                style: Style::of_share(self.page.share(gem.own)),
                name: one_line(&gem.name).into_owned(),
                ..Row::default()
            });
        }
        let title = "Gems (by samples of tests; total: with what they call)";
        self.page.section(title, &table, self.tests.gems.len())
    }

    fn ops(&self) -> String {
        if self.tests.ops.is_empty() {
            return String::new();
        }
        let scale = self.page.scale();
        let columns = [Column::new("self"), Column::new("tests")];
        let mut table = Table::new(columns).with_names("op");
        for op in self.page.shown(&self.tests.ops) {
            table.push(Row {
                cells: vec![scale.text(op.own), grouped(op.tests as u64)],
                style: Style::of_share(self.page.share(op.own)),
                name: one_line(&op.name).into_owned(),
                detail: format!("{} in {}", scale.text(op.most), one_line(&op.most_in)),
                ..Row::default()
            });
        }
        let title = "Ops (by samples of tests; beside each: the test with the most of it)";
        self.page.section(title, &table, self.tests.ops.len())
    }

    fn state_columns(&self) -> impl Iterator<Item = Column> {
        let states = self.tests.states(&self.tests.total).into_iter();
        states.map(|(name, _)| Column::weighing(name, 2))
    }

    fn time(&self, ns: u64) -> String {
        self.scale.text(ns)
    }

    fn share(&self, ns: u64) -> f64 {
        percent(ns, self.tests.total.wall_ns)
    }

    fn style(&self, ns: u64) -> Option<Style> {
        Style::of_share(self.share(ns))
    }
}

fn name(test: &Test) -> String {
    match &*test.name {
        "" => format!("{FURTHER_TESTS} {}", one_line(&test.file)),
        name => one_line(name).into_owned(),
    }
}

//! The tests of a suite in Markdown: the slowest ones, their files, factories, gems and ops. Any thread.

use super::amount;
use super::part::Part;
use super::text::{Table, code};
use crate::heads::{Times, tests_head};
use rperf_model::SuiteSums;
use rperf_report::numbers::{grouped, percent};
use rperf_report::{FURTHER_TESTS, Test, Tests};

/// The tests; nothing without any.
pub(super) fn tests(part: &Part<'_>) -> String {
    let Some(tests) = Tests::of(part.report.profile, part.sort) else {
        return String::new();
    };
    let suite = Suite {
        part,
        times: Times::up_to(tests.total.wall_ns),
        tests: &tests,
    };
    let sections = [
        suite.examples(),
        suite.files(),
        suite.factories(),
        suite.gems(),
        suite.ops(),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|it| !it.is_empty()).collect();
    sections.join("\n")
}

struct Suite<'a> {
    part: &'a Part<'a>,
    times: Times,
    tests: &'a Tests,
}

impl Suite<'_> {
    fn examples(&self) -> String {
        let (mut headings, states) = (vec!["total", "runs"], self.states(&self.tests.total));
        headings.extend(states.iter().map(|it| it.0));
        headings.push("objects");
        let numbers = headings.len();
        headings.extend(["test", "title"]);
        let mut table = Table::new(&headings, numbers);
        for test in self.part.shown(&self.tests.examples) {
            let sums = &test.sums;
            let mut cells = vec![self.times.text(sums.wall_ns), grouped(sums.count)];
            cells.extend(
                self.states(sums)
                    .into_iter()
                    .map(|it| self.times.text(it.1)),
            );
            cells.push(objects(sums));
            cells.push(name(test));
            cells.push(text(&sums.title));
            table.row(cells);
        }
        let head = tests_head(self.tests, name);
        let all = self.tests.examples.len();
        self.part
            .section("Slowest tests", &head, &table.text(), all)
    }

    fn files(&self) -> String {
        let mut headings = vec!["total", "total%", "tests", "hooks"];
        headings.extend(self.states(&self.tests.total).iter().map(|it| it.0));
        let numbers = headings.len();
        headings.push("file");
        let mut table = Table::new(&headings, numbers);
        for file in self.part.shown(&self.tests.files) {
            let sums = &file.sums;
            let share = percent(sums.wall_ns, self.tests.total.wall_ns);
            let mut cells = vec![
                self.times.text(sums.wall_ns),
                format!("{share:.1}%"),
                grouped(file.tests),
                self.times.text(file.hooks_ns),
            ];
            cells.extend(
                self.states(sums)
                    .into_iter()
                    .map(|it| self.times.text(it.1)),
            );
            cells.push(code(&file.name));
            table.row(cells);
        }
        let text = "*hooks*: what runs beside tests, such as `before(:all)`.";
        let all = self.tests.files.len();
        self.part
            .section("Files of tests", text, &table.text(), all)
    }

    fn factories(&self) -> String {
        if self.tests.factories.is_empty() {
            return String::new();
        }
        let headings = ["own", "total", "runs", "top-level", "objects", "factory"];
        let mut table = Table::new(&headings, 5);
        for factory in self.part.shown(&self.tests.factories) {
            let sums = &factory.sums;
            table.row([
                self.times.text(sums.own_ns),
                self.times.text(sums.wall_ns),
                grouped(sums.count),
                grouped(sums.top_level),
                objects(sums),
                match &*factory.name {
                    "" => "further factories".into(),
                    name => code(name),
                },
            ]);
        }
        let text = "*own*: without those that they call; *top-level*: called by no other.";
        let all = self.tests.factories.len();
        self.part.section("Factories", text, &table.text(), all)
    }

    fn gems(&self) -> String {
        if self.tests.gems.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["total", "self", "gem"], 2);
        for gem in self.part.shown(&self.tests.gems) {
            let [total, own] = [gem.total, gem.own].map(|it| amount(&self.part.report.scale, it));
            table.row([total, own, code(&gem.name)]);
        }
        let text = "By samples of tests; *total*: with what they call.";
        let all = self.tests.gems.len();
        self.part.section("Gems of tests", text, &table.text(), all)
    }

    fn ops(&self) -> String {
        if self.tests.ops.is_empty() {
            return String::new();
        }
        let mut table = Table::new(&["self", "tests", "most", "op", "most in"], 3);
        for op in self.part.shown(&self.tests.ops) {
            let [own, most] = [op.own, op.most].map(|it| amount(&self.part.report.scale, it));
            let tests = grouped(op.tests as u64);
            table.row([own, tests, most, code(&op.name), code(&op.most_in)]);
        }
        let text = "By samples of tests; *most in*: the test with the most of it.";
        let all = self.tests.ops.len();
        self.part.section("Ops of tests", text, &table.text(), all)
    }

    fn states(&self, sums: &SuiteSums) -> Vec<(&'static str, u64)> {
        self.tests.states(sums)
    }
}

fn name(test: &Test) -> String {
    match &*test.name {
        "" => format!("{FURTHER_TESTS} {}", code(&test.file)),
        name => code(name),
    }
}

/// A text as a code span; nothing for an empty one.
fn text(text: &str) -> String {
    match text {
        "" => String::new(),
        text => code(text),
    }
}

fn objects(sums: &SuiteSums) -> String {
    sums.objects.map_or_else(|| "-".into(), grouped)
}

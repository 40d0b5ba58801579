//! The ops of tests, such as their queries: by samples, because accounts of tests don't tell them apart.
//! Any thread.

use crate::rows::in_ops::op_of_rows;
use rperf_model::{LabelSetId, Order, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// An op, by samples of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestOp {
    /// Its name.
    pub name: String,
    /// While it was the innermost op.
    pub own: i64,
    /// How many tests have samples in it.
    pub tests: usize,
    /// The test that has most of it: its label.
    pub most_in: String,
    /// What that one has.
    pub most: i64,
}

/// The ops of a profile of nothing but tests, the one with the most first. Tests have a label with this key.
pub(super) fn ops(tests: &Profile, key: &str) -> Vec<TestOp> {
    let column = tests.schema.default_column();
    let op_of = op_of_rows(tests);
    let mut known = FxHashMap::default();
    let mut by_test: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for row in tests.weights.iter() {
        let Some(op) = op_of(row.key) else {
            continue;
        };
        let labels = row.key.labels;
        let test = known
            .entry(labels)
            .or_insert_with(|| label(tests, labels, key));
        let Some(test) = test else {
            continue;
        };
        let sum = by_test.entry((op, *test)).or_default();
        *sum = sum.saturating_add(row.value(column));
    }
    let mut ops: Vec<TestOp> = Vec::new();
    for ((op, test), value) in by_test.into_iter().filter(|it| it.1 != 0) {
        match ops.last_mut() {
            Some(last) if last.name == op => last.add(test, value),
            _ => {
                let mut found = TestOp::named(op);
                found.add(test, value);
                ops.push(found);
            }
        }
    }
    ops.order_by_key(|it| Reverse(it.own));
    ops
}

impl TestOp {
    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            own: 0,
            tests: 0,
            most_in: String::new(),
            most: 0,
        }
    }

    fn add(&mut self, test: &str, value: i64) {
        self.own = self.own.saturating_add(value);
        self.tests += 1;
        if value > self.most {
            self.most = value;
            test.clone_into(&mut self.most_in);
        }
    }
}

fn label<'a>(profile: &'a Profile, labels: LabelSetId, key: &str) -> Option<&'a str> {
    let text = |id| profile.strings.get(id);
    let mut pairs = profile.label_sets.get(labels).iter();
    pairs.find_map(|&(of, value)| (text(of) == key).then(|| text(value)))
}

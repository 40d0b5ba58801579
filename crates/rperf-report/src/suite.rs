//! What the tests of a suite took: the slowest ones, their files, the factories, the gems, and the ops.
//! All but the last two is from exact accounts. Asked by `rperf report --tests` and for JSON; any thread.

mod test_ops;

pub use test_ops::TestOp;

use crate::filter::{Filter, TagFilter};
use crate::stack::groups::CoreMethods;
use crate::top::{By, Sort, Top};
use rperf_model::{FrameKind, Order, Profile, SuiteKey, SuiteKind, SuiteSums};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What stands for tests that have no row of their own, in tables.
pub const FURTHER_TESTS: &str = "(further tests)";

/// The label of a test.
const TEST: &str = "example";

/// What all samples of tests have, and those of hooks.
const OF_TESTS: &str = "example=.";

/// What samples of hooks have: [`rperf_model::Suite::HOOKS`].
const OF_HOOKS: &str = r"example=^\[hooks\]$";

/// What stands for time in which tests wait, in the table of gems.
const WAITS: &str = "(waits)";

/// What stands for garbage collection there.
const COLLECTIONS: &str = "(garbage collection)";

/// Our own methods run each test, and so are below all others.
const OWN_GEM: &str = "rperf";

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tests {
    /// All tests with the hooks of their files; of all processes.
    pub total: SuiteSums,
    /// How many different tests have a row of their own.
    pub tests: usize,
    /// How often tests ran that have none, as there are too many.
    pub without_row: u64,
    /// The tests, the slowest first.
    pub examples: Vec<Test>,
    /// The files, the slowest first.
    pub files: Vec<TestFile>,
    /// The factories, those with the most time of their own first.
    pub factories: Vec<Factory>,
    /// The gems, the one with the most in all first.
    pub gems: Vec<TestGem>,
    /// The ops, the one with the most first.
    pub ops: Vec<TestOp>,
}

/// A test; or the tests of a file that have no row of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// The example's id, or `Class#test`; empty for those that have no row of their own.
    pub name: String,
    /// Its file.
    pub file: String,
    /// What it took.
    pub sums: SuiteSums,
}

/// A file with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFile {
    /// Its path.
    pub name: String,
    /// All its tests, and what runs beside them.
    pub sums: SuiteSums,
    /// How often its tests ran.
    pub tests: u64,
    /// What runs beside its tests.
    pub hooks_ns: u64,
}

/// A factory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factory {
    /// Its name and strategy; empty for those that have no row of their own.
    pub name: String,
    /// What it took.
    pub sums: SuiteSums,
}

/// A gem, by samples of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestGem {
    /// The gem with its version, or in brackets the kind of code.
    pub name: String,
    /// While its own code ran.
    pub own: i64,
    /// With what it calls.
    pub total: i64,
}

impl Tests {
    /// The states of a row, with their names; that of fibers only if any test has it.
    pub fn states(&self, sums: &SuiteSums) -> Vec<(&'static str, u64)> {
        let mut states = vec![
            ("running", sums.running_ns),
            ("GVL wait", sums.gvl_wait_ns),
            ("blocked", sums.blocked_ns),
            ("GC", sums.gc_ns),
        ];
        if self.total.suspended_ns > 0 {
            states.push(("suspended", sums.suspended_ns));
        }
        states
    }

    /// The tests of `profile`; `None` if it has none. Factories are in the order of `sort`.
    pub fn of(profile: &Profile, sort: Sort) -> Option<Self> {
        let mut tests = Self::without_gems(profile, sort)?;
        let left = of_tests(profile);
        tests.ops = test_ops::ops(&left, TEST);
        tests.gems = gems(left);
        Some(tests)
    }

    /// The tests without the gems and the ops: all that is known of accounts alone.
    pub fn without_gems(profile: &Profile, sort: Sort) -> Option<Self> {
        if profile.suite.is_empty() {
            return None;
        }
        let mut tests = Tests::default();
        let mut files: BTreeMap<&str, TestFile> = BTreeMap::new();
        for (key, sums) in profile.suite.iter() {
            match key.kind {
                SuiteKind::Factory => tests.factories.push(Factory {
                    name: key.name.clone(),
                    sums: sums.clone(),
                }),
                SuiteKind::Example | SuiteKind::Hooks => tests.add(key, sums, &mut files),
            }
        }
        // Hooks are counted, too.
        for file in files.values_mut() {
            file.sums.count = file.tests;
        }
        let counts = files.values().map(|file| file.tests);
        tests.total.count = counts.fold(0, u64::saturating_add);
        tests.files = files.into_values().collect();
        let by_wall = |sums: &SuiteSums| Reverse(sums.wall_ns);
        tests.examples.order_by_key(|it| by_wall(&it.sums));
        tests.files.order_by_key(|it| by_wall(&it.sums));
        tests.factories.order_by_key(|it| match sort {
            Sort::SelfValue => Reverse(it.sums.own_ns),
            Sort::TotalValue => by_wall(&it.sums),
        });
        Some(tests)
    }

    fn add<'a>(
        &mut self,
        key: &'a SuiteKey,
        sums: &SuiteSums,
        files: &mut BTreeMap<&'a str, TestFile>,
    ) {
        self.total.add(sums);
        let file = files.entry(&key.group).or_insert_with(|| TestFile {
            name: key.group.clone(),
            sums: SuiteSums::default(),
            tests: 0,
            hooks_ns: 0,
        });
        file.sums.add(sums);
        file.sums.title.clear();
        self.total.title.clear();
        if key.kind == SuiteKind::Hooks {
            file.hooks_ns = file.hooks_ns.saturating_add(sums.wall_ns);
            return;
        }
        file.tests = file.tests.saturating_add(sums.count);
        match key.name.is_empty() {
            true => self.without_row = self.without_row.saturating_add(sums.count),
            false => self.tests += 1,
        }
        self.examples.push(Test {
            name: key.name.clone(),
            file: key.group.clone(),
            sums: sums.clone(),
        });
    }
}

/// The samples of tests, without those of hooks.
fn of_tests(profile: &Profile) -> Profile {
    let filter = Filter {
        tag_focus: TagFilter::new(OF_TESTS).into_iter().collect(),
        tag_ignore: TagFilter::new(OF_HOOKS).into_iter().collect(),
        ..Filter::default()
    };
    filter.apply(profile.clone()).profile
}

/// Ops have a table of their own, and their time is here that of the libraries that they are of.
fn gems(tests: Profile) -> Vec<TestGem> {
    let without_ops = Filter {
        hides_ops: true,
        ..Filter::default()
    };
    let tests = without_ops.apply(tests).profile;
    let top = Top::of(
        &tests,
        tests.schema.default_column(),
        &By::Gem(CoreMethods::Caller),
    );
    let rows = top.sorted(Sort::TotalValue).into_iter();
    let rows = rows.filter(|row| row.self_value != 0 || *row.function.name != *OWN_GEM);
    rows.map(|row| TestGem {
        name: gem_name(&row.function.name).to_owned(),
        own: row.self_value,
        total: row.total_value,
    })
    .collect()
}

/// What a row of the table of gems is called: nobody looks for a lock of the VM there.
fn gem_name(name: &str) -> &str {
    match FrameKind::of(name) {
        FrameKind::Gvl => WAITS,
        FrameKind::Gc => COLLECTIONS,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::frame_kind::OP;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::{LabelSetId, State, Suite, WeightKey, test_support};

    fn add(profile: &mut Profile, kind: SuiteKind, group: &str, name: &str, times: [u64; 3]) {
        let [count, wall_ns, own_ns] = times;
        let key = SuiteKey {
            kind,
            group: group.into(),
            name: name.into(),
        };
        let sums = SuiteSums {
            title: format!("title of {name}"),
            count,
            wall_ns,
            own_ns,
            objects: Some(count),
            ..SuiteSums::default()
        };
        profile.suite.add(key, &sums);
    }

    #[test]
    fn tests_are_told_by_file_and_the_slowest_come_first() {
        let mut profile = TestProfile::wall()
            .with(&["main", "work"], 1, State::Running, 30)
            .profile;
        assert_eq!(Tests::of(&profile, Sort::SelfValue), None);
        add(&mut profile, SuiteKind::Example, "a", "a[1]", [1, 5, 5]);
        add(&mut profile, SuiteKind::Example, "b", "b[1]", [2, 9, 9]);
        add(&mut profile, SuiteKind::Example, "b", "", [7, 1, 1]);
        add(&mut profile, SuiteKind::Hooks, "a", "", [3, 20, 20]);
        add(&mut profile, SuiteKind::Factory, "", "team", [1, 8, 2]);
        add(&mut profile, SuiteKind::Factory, "", "user", [4, 6, 6]);
        let tests = Tests::of(&profile, Sort::SelfValue).expect("tests");
        let total = (tests.total.count, tests.total.wall_ns, tests.tests);
        assert_eq!((total, tests.without_row), ((10, 35, 2), 7));
        let names: Vec<_> = tests.examples.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["b[1]", "a[1]", ""]);
        let files = tests.files.iter();
        let files: Vec<_> = files
            .map(|it| (&*it.name, it.sums.wall_ns, it.tests, it.hooks_ns))
            .collect();
        assert_eq!(files, [("a", 25, 1, 20), ("b", 10, 9, 0)]);
        let factories = |tests: &Tests| {
            let factories = tests.factories.iter();
            factories.map(|it| it.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(factories(&tests), ["user", "team"]);
        let by_total = Tests::of(&profile, Sort::TotalValue).expect("tests");
        assert_eq!(factories(&by_total), ["team", "user"]);
    }

    #[test]
    fn sums_of_damaged_files_have_an_end() {
        let mut profile = TestProfile::wall().profile;
        for file in ["a", "b"] {
            add(&mut profile, SuiteKind::Example, file, "1", [u64::MAX; 3]);
        }
        let tests = Tests::of(&profile, Sort::SelfValue).expect("tests");
        assert_eq!(tests.total.count, u64::MAX);
    }

    #[test]
    fn gems_are_those_of_samples_of_tests() {
        let mut profile = TestProfile::wall()
            .with(&["main", "work"], 1, State::Running, 30)
            .profile;
        add(&mut profile, SuiteKind::Example, "a", "a[1]", [1, 5, 5]);
        let tests = |profile: &Profile| Tests::of(profile, Sort::SelfValue).expect("tests");
        assert_eq!(tests(&profile).gems, []);
        profile.label_all(&[("example", "a[1]")]);
        let gems = tests(&profile).gems;
        assert_eq!((gems.len(), gems[0].own, gems[0].total), (1, 30, 30));
        for (state, name) in [
            (State::GvlBlocked, WAITS),
            (State::GvlWait, WAITS),
            (State::GcMarking, COLLECTIONS),
        ] {
            let mut waiting = TestProfile::wall()
                .with(&["main", "work"], 1, state, 20)
                .profile;
            waiting.suite = profile.suite.clone();
            waiting.label_all(&[("example", "a[1]")]);
            let gems = tests(&waiting).gems;
            let named = gems.iter().find(|it| it.name == name);
            assert_eq!(named.map(|it| (it.own, it.total)), Some((20, 20)));
        }
        profile.label_all(&[("example", Suite::HOOKS)]);
        assert_eq!(tests(&profile).gems, []);
    }

    #[test]
    fn ops_are_those_of_samples_of_tests() {
        let mut found = TestProfile::wall();
        add(
            &mut found.profile,
            SuiteKind::Example,
            "a",
            "a[1]",
            [1, 5, 5],
        );
        let [one, two, hooks] = ["a[1]", "a[2]", Suite::HOOKS]
            .map(|test| found.labels(&[("example", test), ("group", "a")]));
        let mut add = |op: &[&str], labels, state, value| {
            let frames = ["main"].iter().map(|&name| (name, "a.rb", 1, 2));
            let ops = op.iter().map(|&name| (name, OP, 0, 0));
            let frames: Vec<_> = frames.chain(ops).collect();
            let node = test_support::node(&mut found.profile, &frames);
            let key = WeightKey {
                node,
                thread: 0,
                labels,
                state,
            };
            found.profile.weights.push(key, &[1, value, value]);
        };
        add(&["[SQL] A"], one, State::GvlBlocked, 30);
        add(&["[SQL] A"], one, State::Running, 5);
        add(&["[SQL] A"], two, State::GvlBlocked, 20);
        add(&["[cache] fetch", "[SQL] A"], two, State::GvlBlocked, 1);
        add(&["[cache] fetch"], two, State::Running, 80);
        add(&["[SQL] A"], hooks, State::GvlBlocked, 400);
        add(&[], one, State::Running, 600);
        add(&["[SQL] A"], LabelSetId(0), State::Running, 700);
        let tests = Tests::of(&found.profile, Sort::SelfValue).expect("tests");
        let ops = tests.ops.iter();
        let ops: Vec<_> = ops
            .map(|it| (&*it.name, it.own, it.tests, &*it.most_in, it.most))
            .collect();
        assert_eq!(
            ops,
            [
                ("[cache] fetch", 80, 1, "a[2]", 80),
                ("[SQL] A", 56, 2, "a[1]", 35)
            ]
        );
        let gems = tests.gems.iter().map(|it| (&*it.name, it.own));
        let mut own: Vec<_> = gems.filter(|it| it.1 > 0).collect();
        own.sort_unstable();
        assert_eq!(own.iter().map(|it| it.1).collect::<Vec<_>>(), [685, 51]);
        assert!(own.iter().all(|it| it.0 != OP), "{own:?}");
    }
}

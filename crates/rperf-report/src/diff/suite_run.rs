//! A run of a suite as a comparison needs it: what each test took, by its account. Called by `rperf diff
//! --tests`; any thread.

use super::run::{Amount, Run, RunRow};
use crate::matching::MethodKey;
use crate::stack::groups::Function;
use crate::suite::FURTHER_TESTS;
use crate::text::code_paths::CodePaths;
use rperf_model::numbers::signed;
use rperf_model::{Profile, Suite, SuiteKey, SuiteKind, SuiteSums, ValueType};
use rustc_hash::{FxHashMap, FxHashSet};

/// A value that each test has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TestValue {
    /// From begin to end, less garbage collection: which test collects changes with those before it.
    #[default]
    WallWithoutGc,
    /// From begin to end.
    Wall,
    /// With the GVL, without garbage collection.
    Running,
    /// Waiting for the GVL.
    GvlWait,
    /// Off the GVL, and not ready to run.
    Blocked,
    /// Collecting garbage.
    Gc,
    /// The objects that it made.
    Objects,
}

impl TestValue {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::WallWithoutGc,
        Self::Wall,
        Self::Running,
        Self::GvlWait,
        Self::Blocked,
        Self::Gc,
        Self::Objects,
    ];

    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::WallWithoutGc => "wall_without_gc",
            Self::Wall => "wall",
            Self::Running => "running",
            Self::GvlWait => "gvl_wait",
            Self::Blocked => "blocked",
            Self::Gc => "gc",
            Self::Objects => "objects",
        }
    }

    /// The smallest difference that is worth a word: 10 ms, or 1,000 objects. What is made once is made by
    /// the first test that needs it.
    pub fn least_difference(self) -> i64 {
        match self {
            Self::Objects => 1_000,
            _ => 10_000_000,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Objects => "count",
            _ => "nanoseconds",
        }
    }

    fn of(self, sums: &SuiteSums) -> Option<i64> {
        let value = match self {
            Self::WallWithoutGc => sums.wall_ns.saturating_sub(sums.gc_ns),
            Self::Wall => sums.wall_ns,
            Self::Running => sums.running_ns,
            Self::GvlWait => sums.gvl_wait_ns,
            Self::Blocked => sums.blocked_ns,
            Self::Gc => sums.gc_ns,
            Self::Objects => sums.objects?,
        };
        Some(signed(value))
    }
}

/// Why a profile's tests can't be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTests {
    /// The profile has no tests.
    #[error("the profile has no tests")]
    None,
    /// The objects of some aren't known.
    #[error("the objects of some tests aren't known")]
    Objects,
}

impl Run {
    /// What the tests of `profile` took, and what ran beside them; of a profile of several runs, in the
    /// mean. A test is found in another run by its title, because ids of RSpec change with the tests before
    /// it. Tests of a file with the same title are found by their order.
    pub fn of_tests(profile: &Profile, value: TestValue) -> Result<Self, NoTests> {
        let entries = profile.suite.iter();
        let mut tests: Vec<_> = entries
            .filter(|(key, _)| key.kind != SuiteKind::Factory)
            .collect();
        if tests.is_empty() {
            return Err(NoTests::None);
        }
        tests.sort_by_cached_key(|(key, _)| (key.kind, &key.group, by_number(&key.name)));
        let runs = runs(&tests);
        let paths = CodePaths::of(profile);
        let mut seen: FxHashMap<(&str, String), u32> = FxHashMap::default();
        let mut rows = Vec::new();
        let mut total: i64 = 0;
        for (key, sums) in tests {
            let times = match key.kind {
                SuiteKind::Hooks => runs.get(&*key.group).copied().unwrap_or(1),
                _ => sums.count,
            };
            let all = value.of(sums).ok_or(NoTests::Objects)?;
            let own = all / signed(times.max(1));
            total = total.saturating_add(own);
            let function = shown(key, sums);
            let known_by = without_addresses(&function.name);
            let nth = seen.entry((&key.group, known_by.clone())).or_default();
            *nth += 1;
            let known_by = Function {
                name: format!("{known_by} {nth}"),
                ..function.clone()
            };
            rows.push(RunRow {
                key: MethodKey::of(&known_by, &paths),
                function,
                own: measured(own),
                total: measured(own),
            });
        }
        Ok(Self {
            value_type: ValueType::new(value.name(), value.unit()),
            duration_ns: profile.meta.duration_ns,
            samples: None,
            idle: 0,
            missing: Vec::new(),
            is_exact: false,
            is_traced: false,
            is_of_tests: true,
            total: measured(total),
            rows,
            label_values: 0,
            requests: 0,
            // Counts can be the same in all runs: no difference is surer than one object, or ns.
            mean_sample: 1.0,
        })
    }

    /// The runs with nothing but the tests that both sides have: a limit is for these.
    pub fn tests_of_both(sides: [&[Run]; 2]) -> [Vec<Run>; 2] {
        let ids = sides.map(|runs| {
            let rows = runs.iter().flat_map(|run| &run.rows);
            rows.map(|row| row.key.id()).collect::<FxHashSet<_>>()
        });
        sides.map(|runs| {
            let of_both = runs.iter().map(|run| {
                let is_kept = |row: &&RunRow| {
                    row.function.name != Suite::HOOKS
                        && ids.iter().all(|it| it.contains(row.key.id()))
                };
                let rows: Vec<_> = run.rows.iter().filter(is_kept).cloned().collect();
                let values = rows.iter().map(|row| row.own.value);
                Run {
                    total: measured(values.fold(0, i64::saturating_add)),
                    rows,
                    ..run.clone()
                }
            });
            of_both.collect()
        })
    }
}

/// How often each file ran, by the test that ran most often.
fn runs<'a>(tests: &[(&'a SuiteKey, &SuiteSums)]) -> FxHashMap<&'a str, u64> {
    let mut runs = FxHashMap::default();
    for (key, sums) in tests.iter().filter(|(key, _)| !key.name.is_empty()) {
        let most: &mut u64 = runs.entry(&*key.group).or_default();
        *most = sums.count.max(*most);
    }
    runs
}

/// A value that no sampling has a part in. How it varies from run to run only several runs tell.
fn measured(value: i64) -> Amount {
    Amount {
        value,
        variance: None,
        repeated: None,
    }
}

/// A test as a row: its title with its id.
fn shown(key: &SuiteKey, sums: &SuiteSums) -> Function {
    let (name, place) = match (key.kind, &*key.name, sums.title.trim()) {
        (SuiteKind::Hooks, ..) => (Suite::HOOKS, &*key.group),
        (_, "", _) => (FURTHER_TESTS, &*key.group),
        (_, id, "") => (id, &*key.group),
        (_, id, title) => (title, id),
    };
    Function {
        name: name.into(),
        path: key.group.clone(),
        short_path: place.into(),
    }
}

/// A title without the addresses of objects, which differ from run to run.
fn without_addresses(title: &str) -> String {
    let mut parts = title.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "0x";
        text += part.trim_start_matches(|it: char| it.is_ascii_hexdigit());
    }
    text
}

/// An id such that `[1:10]` comes after `[1:9]`: each run of digits with its length before it.
fn by_number(id: &str) -> Vec<(usize, &str)> {
    let is_digit = |it: char| it.is_ascii_digit();
    let parts = id.split_inclusive(|it: char| !is_digit(it));
    let parts = parts.map(|part| (part.len(), part));
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Change, Diff, Normalize};
    use crate::top::Sort;
    use rperf_model::test_profile::TestProfile;

    const MS: u64 = 1_000_000;

    /// A file with these tests: id, title and time in ms.
    fn suite(tests: &[(&str, &str, u64)]) -> Profile {
        let mut profile = TestProfile::wall().profile;
        let mut add = |kind, name: &str, title: &str, ms| {
            let key = SuiteKey {
                kind,
                group: "spec/a_spec.rb".into(),
                name: name.into(),
            };
            let sums = SuiteSums {
                title: title.into(),
                count: 1,
                wall_ns: ms * MS,
                objects: Some(ms * 10),
                ..SuiteSums::default()
            };
            profile.suite.add(key, &sums);
        };
        for (id, title, ms) in tests {
            add(SuiteKind::Example, id, title, *ms);
        }
        add(SuiteKind::Hooks, "", "", 5);
        add(SuiteKind::Factory, "user", "", 7_000);
        profile
    }

    fn diff(base: &[Profile], target: &[Profile], value: TestValue) -> Diff {
        let runs = |side: &[Profile]| -> Vec<Run> {
            let runs = side.iter().map(|it| Run::of_tests(it, value));
            runs.collect::<Result<_, _>>().expect("tests")
        };
        let (base, target) = (runs(base), runs(target));
        Diff::of(&base, &target, Sort::SelfValue, Normalize::No).expect("comparable")
    }

    fn rows(diff: &Diff) -> Vec<(&str, &str, i64, Change)> {
        let ms = |row: &crate::DiffRow| row.delta() / MS as i64;
        let rows = diff.rows.iter();
        rows.map(|it| {
            (
                &*it.function.name,
                &*it.function.short_path,
                ms(it),
                it.change,
            )
        })
        .collect()
    }

    #[test]
    fn tests_are_found_by_their_titles_whose_ids_have_changed() {
        let base = suite(&[("a[1]", "adds", 20), ("a[2]", "waits", 300)]);
        let target = suite(&[
            ("a[1]", "is new", 40),
            ("a[2]", "adds", 20),
            ("a[3]", "waits", 350),
        ]);
        let diff = diff(&[base], &[target], TestValue::Wall);
        // One run of each side doesn't tell by how much runs differ.
        let expected = [
            ("waits", "a[3]", 50, Change::Unknown),
            ("is new", "a[1]", 40, Change::Unknown),
        ];
        assert_eq!(rows(&diff), expected);
        assert_eq!(
            (diff.total.base, diff.total.target),
            (325 * MS as i64, 415 * MS as i64)
        );
    }

    #[test]
    fn tests_of_the_same_title_are_found_by_their_order_and_addresses_are_none_of_it() {
        let base = suite(&[
            ("a[1:9]", "adds", 20),
            ("a[1:10]", "adds", 300),
            ("a[1:11]", "shows #<A:0x00ff> well", 60),
        ]);
        let target = suite(&[
            ("a[1:10]", "adds", 30),
            ("a[1:11]", "adds ", 300),
            ("a[1:12]", "adds", 40),
            ("a[1:13]", "shows #<A:0x12ab> well", 50),
        ]);
        let diff = diff(&[base], &[target], TestValue::Wall);
        let expected = [
            ("adds", "a[1:12]", 40, Change::Unknown),
            ("adds", "a[1:10]", 10, Change::Unknown),
            ("shows #<A:0x12ab> well", "a[1:13]", -10, Change::Unknown),
        ];
        assert_eq!(rows(&diff), expected);
    }

    #[test]
    fn several_runs_tell_noise_of_times_and_objects() {
        let run = |adds, waits| suite(&[("a[1]", "adds", adds), ("a[2]", "waits", waits)]);
        let base = [run(100, 300), run(104, 290), run(98, 310), run(101, 305)];
        let target = [run(150, 306), run(153, 292), run(149, 301), run(148, 309)];
        for value in [TestValue::WallWithoutGc, TestValue::Objects] {
            let diff = diff(&base, &target, value);
            let rows = diff.rows.iter();
            let changes: Vec<_> = rows.map(|it| (&*it.function.name, it.change)).collect();
            assert_eq!(changes, [("adds", Change::More), ("waits", Change::Noise)]);
            let above = diff.above(0.2);
            let above: Vec<_> = above.iter().map(|it| &*it.function.name).collect();
            assert_eq!(above, ["adds"]);
            assert!(diff.above(0.8).is_empty());
        }
    }

    #[test]
    fn counts_that_are_the_same_in_all_runs_differ_from_others() {
        let run = |adds| suite(&[("a[1]", "adds", adds)]);
        let sides = [[run(100), run(100)], [run(900), run(900)]];
        let diff = diff(&sides[0], &sides[1], TestValue::Objects);
        assert_eq!(diff.rows[0].change, Change::More);
        let above: Vec<_> = diff
            .above(0.3)
            .iter()
            .map(|it| &*it.function.name)
            .collect();
        assert_eq!(above, ["", "adds"]);
    }

    #[test]
    fn a_profile_of_several_runs_has_their_mean_and_limits_are_for_tests_of_both_sides() {
        let once = suite(&[("a[1]", "adds", 100), ("a[2]", "waits", 300)]);
        let mut thrice = once.clone();
        for _ in 0..2 {
            thrice.merge(&once).expect("the same values");
        }
        let run = |profile: &Profile| Run::of_tests(profile, TestValue::Wall).expect("tests");
        assert_eq!(run(&thrice).total(), run(&once).total());
        let target = suite(&[("a[1]", "is new", 500), ("a[2]", "adds", 130)]);
        let target = run(&target);
        let [base, target] = Run::tests_of_both([&[run(&once)], &[target]]);
        let diff = Diff::of(&base, &target, Sort::SelfValue, Normalize::No).expect("comparable");
        assert_eq!(rows(&diff), [("adds", "a[2]", 30, Change::Unknown)]);
        let ms = [diff.total.base, diff.total.target].map(|it| it / MS as i64);
        assert_eq!(ms, [100, 130]);
    }

    #[test]
    fn profiles_without_tests_or_their_objects_are_refused() {
        let none = TestProfile::wall().profile;
        assert_eq!(
            Run::of_tests(&none, TestValue::Wall).err(),
            Some(NoTests::None)
        );
        let mut some = suite(&[("a[1]", "adds", 20)]);
        let key = SuiteKey {
            kind: SuiteKind::Example,
            group: "b".into(),
            name: "b[1]".into(),
        };
        some.suite.add(
            key,
            &SuiteSums {
                count: 1,
                ..SuiteSums::default()
            },
        );
        assert_eq!(
            Run::of_tests(&some, TestValue::Objects).err(),
            Some(NoTests::Objects)
        );
        assert!(Run::of_tests(&some, TestValue::Gc).is_ok());
    }
}

//! A run of a suite as a comparison needs it: what each test took, by its account. Called by `rperf diff
//! --tests`; any thread.

use super::run::{Amount, Run, RunRow};
use crate::code_paths::CodePaths;
use crate::groups::Function;
use crate::matching::MethodKey;
use rperf_model::{Profile, SuiteKey, SuiteKind, SuiteSums, ValueType};
use rustc_hash::FxHashMap;

/// A value that each test has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TestValue {
    /// From begin to end.
    #[default]
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
    pub const ALL: [Self; 6] = [
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
            Self::Wall => "wall",
            Self::Running => "running",
            Self::GvlWait => "gvl_wait",
            Self::Blocked => "blocked",
            Self::Gc => "gc",
            Self::Objects => "objects",
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
            Self::Wall => sums.wall_ns,
            Self::Running => sums.running_ns,
            Self::GvlWait => sums.gvl_wait_ns,
            Self::Blocked => sums.blocked_ns,
            Self::Gc => sums.gc_ns,
            Self::Objects => sums.objects?,
        };
        Some(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// Why a profile's tests can't be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTests {
    /// It has none.
    #[error("the profile has no tests")]
    None,
    /// The objects of some aren't known.
    #[error("the objects of some tests aren't known")]
    Objects,
}

impl Run {
    /// What the tests of `profile` took, and what ran beside them. A test is found in another run by its
    /// title, because ids of RSpec change with the tests before it; or else by its id.
    pub fn of_tests(profile: &Profile, value: TestValue) -> Result<Self, NoTests> {
        let tests = || {
            let entries = profile.suite.iter();
            entries.filter(|(key, _)| key.kind != SuiteKind::Factory)
        };
        if tests().next().is_none() {
            return Err(NoTests::None);
        }
        let mut titles: FxHashMap<(&str, &str), u32> = FxHashMap::default();
        for (key, sums) in tests() {
            *titles.entry((&key.group, &sums.title)).or_default() += 1;
        }
        let paths = CodePaths::of(profile);
        let mut rows = Vec::new();
        let mut total: i64 = 0;
        for (key, sums) in tests() {
            let own = value.of(sums).ok_or(NoTests::Objects)?;
            total = total.saturating_add(own);
            let is_only = titles.get(&(&*key.group, &*sums.title)) == Some(&1);
            let function = shown(key, sums, is_only);
            rows.push(RunRow {
                key: MethodKey::of(&function, &paths),
                function,
                own: exact(own),
                total: exact(own),
            });
        }
        Ok(Self {
            value_type: ValueType::new(value.name(), value.unit()),
            duration_ns: profile.meta.duration_ns,
            samples: None,
            idle: 0,
            missing: Vec::new(),
            is_exact: value == TestValue::Objects,
            is_traced: false,
            total: exact(total),
            rows,
            label_values: 0,
            requests: 0,
            mean_sample: 0.0,
        })
    }
}

/// A value that no sampling has a part in. How it varies from run to run only several runs tell.
fn exact(value: i64) -> Amount {
    Amount {
        value,
        variance: None,
        repeated: None,
    }
}

/// A test as a row: its title with its id. `is_only`: no other one of the file has the title.
fn shown(key: &SuiteKey, sums: &SuiteSums, is_only: bool) -> Function {
    let (name, place) = match (key.kind, &*key.name, &*sums.title) {
        (SuiteKind::Hooks, ..) => (rperf_model::Suite::HOOKS, &*key.group),
        (_, "", _) => (FURTHER, &*key.group),
        (_, id, "") => (id, &*key.group),
        (_, id, title) if is_only => (title, id),
        (_, id, title) => {
            let name = format!("{title} {id}");
            return Function {
                name,
                path: key.group.clone(),
                short_path: key.group.clone(),
            };
        }
    };
    Function {
        name: name.into(),
        path: key.group.clone(),
        short_path: place.into(),
    }
}

/// What stands for tests that have no row of their own.
const FURTHER: &str = "(further tests)";

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
    fn the_same_title_twice_is_told_apart_by_its_id() {
        let base = suite(&[("a[1]", "adds", 20), ("a[2]", "adds", 300)]);
        let target = suite(&[("a[1]", "adds", 30), ("a[2]", "adds", 300)]);
        let diff = diff(&[base], &[target], TestValue::Wall);
        assert_eq!(
            rows(&diff),
            [("adds a[1]", "spec/a_spec.rb", 10, Change::Unknown)]
        );
    }

    #[test]
    fn several_runs_tell_noise_and_objects_need_one() {
        let run = |adds, waits| suite(&[("a[1]", "adds", adds), ("a[2]", "waits", waits)]);
        let base = [run(100, 300), run(104, 290), run(98, 310), run(101, 305)];
        let target = [run(150, 306), run(153, 292), run(149, 301), run(148, 309)];
        let diffed = diff(&base, &target, TestValue::Wall);
        let changes: Vec<_> = diffed
            .rows
            .iter()
            .map(|it| (&*it.function.name, it.change))
            .collect();
        assert_eq!(changes, [("adds", Change::More), ("waits", Change::Noise)]);
        let above: Vec<_> = diffed
            .above(0.2)
            .iter()
            .map(|it| &*it.function.name)
            .collect();
        assert_eq!(above, ["adds"]);
        assert!(diffed.above(0.8).is_empty());
        let objects = diff(&base[..1], &target[..1], TestValue::Objects);
        let changes: Vec<_> = objects
            .rows
            .iter()
            .map(|it| (it.delta(), it.change))
            .collect();
        assert_eq!(changes, [(500, Change::More), (60, Change::More)]);
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

//! Tests of a suite, whose times are measured: what runs differ by is learned from each row, and from all.

use super::*;
use rperf_model::{SuiteKey, SuiteKind, SuiteSums};

const TESTS: usize = 200;

/// The tests of a suite, as they vary from run to run.
struct Suite {
    /// What each takes, in ns.
    means: Vec<f64>,
    /// By what share of that it varies.
    shares: Vec<f64>,
    /// How likely the machine stands still for a while in a test.
    stalls: f64,
}

impl Suite {
    /// Most tests take some milliseconds, and some much longer; some are unsteady.
    fn new(stalls: f64, random: &mut Random) -> Self {
        let mut spread = |middle: f64, by: f64| {
            (0..TESTS)
                .map(|_| middle * (by * random.normal()).exp())
                .collect()
        };
        Self {
            means: spread(3e6, 1.2),
            shares: spread(0.03, 0.7),
            stalls,
        }
    }

    fn run(&self, random: &mut Random) -> Run {
        let mut profile = Profile::new(test_support::cpu_schema());
        for (test, (mean, share)) in self.means.iter().zip(&self.shares).enumerate() {
            let stall = match random.uniform() < self.stalls {
                true => -1e7 * random.uniform().ln(),
                false => 0.0,
            };
            let took = mean * (1.0 + share * random.normal()).max(0.1) + stall;
            let key = SuiteKey {
                kind: SuiteKind::Example,
                group: "a_spec.rb".into(),
                name: format!("a_spec.rb[1:{test}]"),
            };
            let sums = SuiteSums {
                count: 1,
                wall_ns: took as u64,
                running_ns: took as u64,
                ..SuiteSums::default()
            };
            profile.suite.add(key, &sums);
        }
        Run::of_tests(&profile, TestValue::Wall).expect("tests")
    }

    fn runs(&self, count: usize, random: &mut Random) -> Vec<Run> {
        (0..count).map(|_| self.run(random)).collect()
    }
}

#[test]
fn a_steady_test_that_is_slower_is_found_beside_unsteady_ones() {
    let mut random = Random(3);
    for count in [4, 5, 10] {
        let mut suite = Suite::new(0.05, &mut random);
        let (slower, name) = (17, "a_spec.rb[1:17]");
        (suite.means[slower], suite.shares[slower]) = (2e7, 0.05);
        let base = suite.runs(count, &mut random);
        suite.means[slower] *= 5.0;
        let target = suite.runs(count, &mut random);
        let diff = diff(&base, &target);
        assert_eq!(names(&diff, Change::More), [name], "{count} runs");
        let above: Vec<_> = diff
            .above(0.5)
            .iter()
            .map(|it| it.function.name.as_str())
            .collect();
        assert!(above.contains(&name), "{count} runs: {above:?}");
    }
}

#[test]
fn unchanged_tests_are_hardly_ever_called_changed() {
    const TRIALS: usize = 50;
    let mut random = Random(4);
    for (count, stalls) in [(2, 0.0), (3, 0.0), (5, 0.03), (8, 0.03)] {
        let (mut with_any, mut above) = (0, 0);
        for _ in 0..TRIALS {
            let suite = Suite::new(stalls, &mut random);
            let [base, target] = [(); 2].map(|()| suite.runs(count, &mut random));
            let diff = diff(&base, &target);
            let changed = diff.with(Change::More).count() + diff.with(Change::Less).count();
            with_any += usize::from(changed > 0);
            above += usize::from(!diff.above(0.1).is_empty());
        }
        let share = |trials: usize| trials as f64 / TRIALS as f64;
        let shares = [share(with_any), share(above)];
        assert!(
            shares.iter().all(|it| *it <= 0.1),
            "{count} runs: {shares:?}"
        );
    }
}

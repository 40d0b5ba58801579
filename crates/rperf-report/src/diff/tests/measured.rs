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

#[test]
fn new_tests_dont_make_others_count_as_changed() {
    const TRIALS: usize = 30;
    let mut random = Random(5);
    let (mut wrong, mut above) = (0, 0);
    for _ in 0..TRIALS {
        let mut suite = Suite::new(0.0, &mut random);
        let base = suite.runs(5, &mut random);
        suite.means.extend([2e7; 30]);
        suite.shares.extend([0.03; 30]);
        let target = suite.runs(5, &mut random);
        let diff = diff(&base, &target);
        let is_new = |row: &&DiffRow| !row.is_compared;
        let new: Vec<_> = diff.rows.iter().filter(is_new).collect();
        assert_eq!(new.len(), 30);
        assert!(new.iter().all(|row| row.change == Change::More));
        let changed = diff.with(Change::More).chain(diff.with(Change::Less));
        wrong += usize::from(changed.filter(|row| !is_new(row)).count() > 0);
        above += usize::from(!diff.rows_above(0.01).is_empty());
    }
    assert!(
        wrong * 8 <= TRIALS && above * 8 <= TRIALS,
        "{wrong} {above}"
    );
}

#[test]
fn few_tests_are_as_sure_as_their_runs() {
    const TRIALS: usize = 2_000;
    let mut random = Random(6);
    for (tests, count) in [(1, 2), (1, 3), (2, 2), (3, 3)] {
        let mut wrong = 0;
        for _ in 0..TRIALS {
            let suite = Suite {
                means: vec![2e7; tests],
                shares: vec![0.05; tests],
                stalls: 0.0,
            };
            let [base, target] = [(); 2].map(|()| suite.runs(count, &mut random));
            let diff = diff(&base, &target);
            let changed = diff.with(Change::More).count() + diff.with(Change::Less).count();
            wrong += usize::from(changed > 0);
        }
        let share = wrong as f64 / TRIALS as f64;
        assert!(share <= 0.065, "{tests} tests, {count} runs: {share}");
    }
}

#[test]
fn the_prior_is_what_rows_have_in_common() {
    let mut random = Random(7);
    let mut rows = |share: &dyn Fn(&mut Random) -> f64| -> Vec<[Vec<Observed>; 2]> {
        let mut side = |mean: f64, share: f64| -> Vec<Observed> {
            let runs = (0..5).map(|_| Observed {
                value: mean * (1.0 + share * random.normal()),
                by_sampling: None,
                sample: 1.0,
            });
            runs.collect()
        };
        let mut shares = Random(8);
        let means = (0..2_000).map(|row| 1e6 * 1.002_f64.powi(row));
        means
            .map(|mean| {
                let share = share(&mut shares);
                [side(mean, share), side(mean, share)]
            })
            .collect()
    };
    // All vary by 5 %: what is known of one is known of all.
    let equal = Moderation::of(rows(&|_| 0.05).into_iter(), 0.0);
    let (share, freedom) = equal.of_mean(1e7);
    assert!((share - 0.05).abs() < 0.002, "{share}");
    assert!(freedom > 40.0, "{freedom}");
    // Variances with 6 degrees of freedom.
    let chi = |random: &mut Random| -> f64 { (0..6).map(|_| random.normal().powi(2)).sum() };
    let differ = Moderation::of(
        rows(&|random| 0.05 * (6.0 / chi(random)).sqrt()).into_iter(),
        0.0,
    );
    let (share, freedom) = differ.of_mean(1e7);
    assert!((share - 0.05).abs() < 0.004, "{share}");
    assert!((4.5..8.0).contains(&freedom), "{freedom}");
}

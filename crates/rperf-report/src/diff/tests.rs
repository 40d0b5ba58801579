//! Tests of the comparison: by example, and with simulated runs that the rule for noise
//! keeps its word.

use super::*;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support;
use rperf_model::{Column, LabelSetId, Profile, Schema, State, ValueType, WeightKey, WeightTable};

mod gc_cost;
mod measured;

const MS: i64 = 1_000_000;

/// A profile in which each method has so many samples of 1 ms of its own.
fn profile(methods: &[(&str, i64)]) -> Profile {
    let mut profile = Profile::new(test_support::cpu_schema());
    let mut table = WeightTable::new(2);
    for &(name, samples) in methods {
        let frames = [("main", "a.rb", 1, 1), (name, "a.rb", 2, 2)];
        let key = WeightKey {
            node: test_support::node(&mut profile, &frames),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &[samples, samples * MS]);
    }
    profile.weights = table.into_weights();
    profile
}

fn run(methods: &[(&str, i64)]) -> Run {
    Run::of(&profile(methods), None)
}

fn diff(base: &[Run], target: &[Run]) -> Diff {
    Diff::of(base, target, Sort::SelfValue, Normalize::No).expect("comparable")
}

fn names(diff: &Diff, change: Change) -> Vec<&str> {
    let rows = diff.with(change);
    rows.map(|row| row.function.name.as_str()).collect()
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    let run = run(&[("a", 500), ("b", 100)]);
    for sort in [Sort::SelfValue, Sort::TotalValue] {
        let runs = [run.clone(), run.clone()];
        let diff = Diff::of(&runs, &runs, sort, Normalize::Total).expect("comparable");
        assert!(diff.rows.is_empty() && diff.above(0.0).is_empty());
        assert_eq!((diff.total.delta(), diff.total.change), (0, Change::Noise));
    }
}

#[test]
fn large_changes_are_found_in_single_runs_and_small_ones_are_not() {
    let base = run(&[
        ("same", 5_000),
        ("slower", 1_000),
        ("faster", 1_000),
        ("a", 30),
    ]);
    let target = run(&[
        ("same", 5_050),
        ("slower", 1_500),
        ("faster", 500),
        ("b", 30),
    ]);
    let diff = diff(&[base], &[target]);
    assert_eq!(names(&diff, Change::More), ["slower", "b"]);
    assert_eq!(names(&diff, Change::Less), ["faster", "a"]);
    assert_eq!(names(&diff, Change::Noise), ["same"]);
    let slower = diff.with(Change::More).next().expect("a row");
    assert_eq!((slower.delta(), slower.percent()), (500 * MS, Some(50.0)));
    assert_eq!(diff.with(Change::More).nth(1).expect("b").percent(), None);
    let above = |share| {
        let rows = diff.above(share);
        let names = rows.iter().map(|row| row.function.name.as_str());
        names.collect::<Vec<_>>()
    };
    assert_eq!(above(0.2), ["slower", "b"]);
    assert_eq!(above(0.5), ["b"]);
}

#[test]
fn several_runs_find_what_one_can_not() {
    let base: Vec<Run> = [1_000, 1_010, 990, 1_005]
        .map(|samples| run(&[("a", samples), ("b", 4_000)]))
        .to_vec();
    let target: Vec<Run> = [1_100, 1_110, 1_090, 1_105]
        .map(|samples| run(&[("a", samples), ("b", 4_000)]))
        .to_vec();
    assert_eq!(names(&diff(&base, &target), Change::More), ["a"]);
    assert_eq!(
        names(&diff(&base[..1], &target[..1]), Change::More),
        Vec::<&str>::new()
    );
}

/// A run at 1000 Hz that computes for some ms and sleeps once.
fn waiting(computing: i64, sleep: i64) -> Run {
    let mut profile = Profile::new(test_support::cpu_schema());
    profile.meta.frequency = 1000;
    let mut table = WeightTable::new(2);
    for (name, state, samples, value) in [
        ("compute", State::Running, computing, computing),
        ("sleep", State::GvlBlocked, 1, sleep),
    ] {
        let key = WeightKey {
            node: test_support::node(&mut profile, &[(name, "a.rb", 2, 2)]),
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        table.add(key, &[samples, value * MS]);
    }
    profile.weights = table.into_weights();
    Run::of(&profile, None)
}

#[test]
fn a_wait_in_one_piece_is_as_sure_as_its_runs_agree() {
    let runs = |sleeps: [i64; 4]| sleeps.map(|sleep| waiting(50, sleep)).to_vec();
    let (base, target) = (runs([300, 301, 300, 302]), runs([901, 900, 902, 900]));
    let found = diff(&base, &target);
    assert_eq!(names(&found, Change::More), ["[GVL blocked]"]);
    assert_eq!(found.total.change, Change::More);
    assert_eq!(found.above(0.05).len(), 2, "the total and the wait");
    let one = diff(&base[..1], &target[..1]);
    assert_eq!(
        names(&one, Change::Noise),
        ["[GVL blocked]"],
        "one run can't tell"
    );
    let varying = [runs([100, 900, 300, 700]), runs([800, 200, 900, 300])];
    let found = diff(&varying[0], &varying[1]);
    assert_eq!(names(&found, Change::More), Vec::<&str>::new());
    assert_eq!(found.total.change, Change::Noise);
}

#[test]
fn a_wait_does_not_hide_what_computes() {
    let base = [350, 353, 348, 351].map(|computing| waiting(computing, 300));
    let target = [420, 424, 419, 421].map(|computing| waiting(computing, 300));
    let found = diff(&base, &target);
    assert_eq!(names(&found, Change::More), ["compute"]);
    assert_eq!(found.total.change, Change::More);
}

#[test]
fn runs_are_scaled_to_be_comparable() {
    let (base, target) = (
        [run(&[("a", 1_000), ("b", 1_000)])],
        [run(&[("a", 2_000), ("b", 6_000)])],
    );
    let diff = Diff::of(&base, &target, Sort::SelfValue, Normalize::Total).expect("comparable");
    assert_eq!(diff.total.delta(), 0);
    assert_eq!(names(&diff, Change::Less), ["a"]);
    assert_eq!(diff.rows[0].target, 500 * MS);
    let error = Diff::of(&base, &target, Sort::SelfValue, Normalize::Duration);
    assert_eq!(error, Err(DiffError::NothingToNormalize("duration")));
    let mut timed = [profile(&[("a", 100)]), profile(&[("a", 200)])];
    timed[0].meta.duration_ns = 10;
    timed[1].meta.duration_ns = 20;
    let timed = timed.map(|profile| Run::of(&profile, None));
    let diff = Diff::of(
        &timed[..1],
        &timed[1..],
        Sort::SelfValue,
        Normalize::Duration,
    );
    assert_eq!(diff.expect("comparable").total.delta(), 0);
}

#[test]
fn runs_are_scaled_by_how_many_values_a_label_has() {
    let requests = |count: i64, ms: i64| {
        let mut test = TestProfile::cpu();
        for request in 0..count {
            let labels = test.labels(&[("request", &request.to_string())]);
            test.add(&["main"], 1, labels, State::Running, ms * MS);
        }
        Run::of(&test.profile, Some("request"))
    };
    let (base, target) = ([requests(10, 3)], [requests(20, 6)]);
    let diff = Diff::of(&base, &target, Sort::SelfValue, Normalize::Label).expect("comparable");
    assert_eq!((diff.total.base, diff.total.target), (30 * MS, 60 * MS));
}

#[test]
fn what_only_one_side_has_is_told_where_the_other_has_no_sample_at_all() {
    let diff = diff(&[run(&[])], &[run(&[("query", 50)])]);
    assert_eq!(names(&diff, Change::More), ["query"]);
    assert_eq!(diff.total.change, Change::More);
}

#[test]
fn different_types_are_not_compared_and_unknown_noise_is_said() {
    let mut other = profile(&[("a", 10)]);
    other.schema = test_support::schema(&[("x", "count"), ("space", "bytes")], 1);
    let other = Run::of(&other, None);
    let ours = run(&[("a", 10)]);
    let error = Diff::of(
        &[ours],
        std::slice::from_ref(&other),
        Sort::SelfValue,
        Normalize::No,
    );
    let message = error.expect_err("differs").to_string();
    assert_eq!(
        message,
        "the profiles can't be compared: one has cpu/nanoseconds, another space/bytes (--value chooses one that both have)"
    );
    let mut twice = profile(&[("a", 20)]);
    twice.schema = test_support::schema(&[("x", "count"), ("space", "bytes")], 1);
    let diff = diff(&[other], &[Run::of(&twice, None)]);
    assert_eq!(names(&diff, Change::Unknown), ["a"]);
    assert!(diff.above(0.1).is_empty());
}

/// SplitMix64: small, and the same numbers everywhere.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normally distributed number, of mean 0 and variance 1.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// How many samples come where so many are due.
    fn samples(&mut self, due: f64) -> i64 {
        if due > 50.0 {
            return (due + due.sqrt() * self.normal()).round().max(0.0) as i64;
        }
        let (mut product, mut count) = (self.uniform(), 0);
        while product > (-due).exp() {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}

const METHODS: usize = 100;

/// How many samples are due for each method: a few have most.
fn due() -> Vec<f64> {
    (0..METHODS)
        .map(|method| 4_000.0 / (method as f64 + 1.0).powf(1.2))
        .collect()
}

/// A run in which methods take as long as they are due, but for what one run differs
/// from another by: the speed of the machine, and every tenth method more than others.
fn simulated(due: &[f64], between_runs: f64, random: &mut Random) -> Run {
    let speed = 1.0 + between_runs * random.normal();
    let mut own = |method: usize| match method % 10 {
        7 => 1.0 + 2.0 * between_runs * random.normal(),
        _ => 1.0,
    };
    let due: Vec<f64> = (0..)
        .zip(due)
        .map(|(method, due)| due * speed * own(method))
        .collect();
    let names: Vec<String> = (0..due.len())
        .map(|method| format!("m{method:03}"))
        .collect();
    let methods: Vec<(&str, i64)> = names
        .iter()
        .zip(due)
        .map(|(name, due)| (name.as_str(), random.samples(due)))
        .collect();
    run(&methods)
}

fn group(due: &[f64], runs: usize, random: &mut Random) -> Vec<Run> {
    (0..runs).map(|_| simulated(due, 0.01, random)).collect()
}

#[test]
fn unchanged_methods_are_hardly_ever_called_changed() {
    const TRIALS: usize = 200;
    let (due, mut random) = (due(), Random(1));
    for runs in [[1, 1], [3, 3], [5, 5], [1, 3]] {
        let mut called = 0;
        let mut trials_with_any = 0;
        for _ in 0..TRIALS {
            let [base, target] = runs.map(|count| group(&due, count, &mut random));
            let diff = diff(&base, &target);
            assert!(diff.tested > 50, "{}", diff.tested);
            let changed = diff.with(Change::More).count() + diff.with(Change::Less).count();
            called += changed;
            trials_with_any += usize::from(changed > 0);
            assert!(diff.above(0.05).len() <= 3);
        }
        let share = called as f64 / (TRIALS * METHODS) as f64;
        assert!(share <= ERROR_RATE, "{runs:?}: {share} of the methods");
        // The rule promises more: of all comparisons of equal programs, few find anything.
        let share = trials_with_any as f64 / TRIALS as f64;
        assert!(share <= 0.1, "{runs:?}: {share} of the comparisons");
    }
}

#[test]
fn known_changes_are_found_and_few_others() {
    const TRIALS: usize = 100;
    let (due, mut random) = (due(), Random(2));
    let mut changed = due.clone();
    // 4,000, 1,741 and 478 samples.
    (changed[0], changed[1], changed[5]) = (due[0] * 1.2, due[1] * 0.7, due[5] * 1.5);
    for runs in [[1, 1], [4, 4]] {
        let (mut found, mut wrong) = (0, 0);
        for _ in 0..TRIALS {
            let base = group(&due, runs[0], &mut random);
            let target = group(&changed, runs[1], &mut random);
            let diff = diff(&base, &target);
            let rows = diff
                .rows
                .iter()
                .filter(|row| matches!(row.change, Change::More | Change::Less));
            for row in rows {
                match row.function.name.as_str() {
                    "m000" | "m005" if row.change == Change::More => found += 1,
                    "m001" if row.change == Change::Less => found += 1,
                    _ => wrong += 1,
                }
            }
        }
        assert!(found >= TRIALS * 3 * 95 / 100, "{runs:?}: {found}");
        assert!(
            wrong * 20 <= found * 2,
            "{runs:?}: {wrong} wrong, {found} right"
        );
    }
}

#[test]
fn counts_of_calls_have_no_noise() {
    let traced = |calls: &[(&str, i64)]| {
        let types = ["calls", "block_calls"].map(|name| ValueType::new(name, "count"));
        let mut profile = Profile::new(Schema::new(types.to_vec(), Column(0)).expect("valid"));
        let mut table = WeightTable::new(2);
        for &(name, count) in calls {
            let key = WeightKey {
                node: test_support::node(&mut profile, &[(name, "a.rb", 2, 2)]),
                thread: 1,
                labels: LabelSetId(0),
                state: State::Running,
            };
            table.add(key, &[count, 0]);
        }
        profile.weights = table.into_weights();
        Run::of(&profile, None)
    };
    let base = [traced(&[("same", 10), ("more", 100), ("less", 3)])];
    let target = [traced(&[("same", 10), ("more", 101), ("less", 2)])];
    let diff = diff(&base, &target);
    assert_eq!(names(&diff, Change::More), ["more"]);
    assert_eq!(names(&diff, Change::Less), ["less"]);
    assert_eq!(diff.total.change, Change::Noise);
    let above: Vec<_> = diff
        .above(0.005)
        .iter()
        .map(|row| row.function.name.clone())
        .collect();
    assert_eq!(above, ["more"]);
}

/// The objects of a method and what is left of 100,000, in a profile with few samples.
fn objects(count: i64) -> Run {
    let types = [
        ("samples", "count"),
        ("wall", "nanoseconds"),
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
    ];
    let mut profile = Profile::new(test_support::schema(&types, 2));
    let mut table = WeightTable::new(4);
    for (name, objects) in [("make", count), ("rest", 100_000)] {
        let key = WeightKey {
            node: test_support::node(&mut profile, &[(name, "a.rb", 1, 1)]),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &[1, MS, objects, 40 * objects]);
    }
    profile.weights = table.into_weights();
    Run::of(&profile, None)
}

#[test]
fn objects_are_counted_one_by_one_so_samples_make_no_noise() {
    for runs in [1, 3] {
        let side = |count| vec![objects(count); runs];
        let more = diff(&side(50_000), &side(60_000));
        assert_eq!(names(&more, Change::More), ["make"]);
        assert_eq!(
            (more.above(0.01).len(), more.total.change),
            (2, Change::More)
        );
        assert!(more.above(0.25).is_empty());
    }
    let little = diff(&[objects(50_000)], &[objects(50_100)]);
    assert_eq!(
        names(&little, Change::Noise),
        ["make"],
        "one run each allows 2 %"
    );
}

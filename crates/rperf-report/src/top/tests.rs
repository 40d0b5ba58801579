//! Tests of the top rows, by example and against a slow obvious count.

use super::*;
use proptest::prelude::*;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{TestFrame, node};
use rperf_model::{LabelSetId, State, StringId};
use std::collections::{BTreeMap, BTreeSet};

/// The column that the test profiles have their times in.
const TIME: Column = Column(1);

fn top(test: &TestProfile, by: &By, sort: Sort) -> Vec<(String, i64)> {
    let top = Top::of(&test.profile, TIME, by);
    let rows = top.sorted(sort).into_iter();
    rows.map(|row| (row.function.name.clone(), row.value(sort)))
        .collect()
}

fn rows<const N: usize>(rows: [(&str, i64); N]) -> Vec<(String, i64)> {
    rows.map(|(name, value)| (name.to_string(), value)).to_vec()
}

#[test]
fn a_state_takes_the_self_time_of_its_stack() {
    let test = TestProfile::wall()
        .with(&["main", "sleep"], 1, State::Running, 3)
        .with(&["main", "sleep"], 1, State::GvlBlocked, 250)
        .with(&["main", "work"], 1, State::Running, 44);
    assert_eq!(
        top(&test, &By::Function, Sort::SelfValue),
        rows([("[GVL blocked]", 250), ("work", 44), ("sleep", 3)])
    );
    assert_eq!(
        top(&test, &By::Function, Sort::TotalValue),
        rows([
            ("main", 297),
            ("sleep", 253),
            ("[GVL blocked]", 250),
            ("work", 44)
        ])
    );
    assert_eq!(
        top(&test, &By::State, Sort::SelfValue),
        rows([("GVL blocked", 250), ("running", 47)])
    );
    let whole = Top::of(&test.profile, TIME, &By::Function);
    assert_eq!((whole.total, whole.samples), (297, Some(3)));
}

#[test]
fn recursion_counts_once_per_sample() {
    let fib = ["main", "fib", "fib", "fib"];
    let test = TestProfile::cpu().with(&fib, 1, State::Running, 7);
    let by_function = top(&test, &By::Function, Sort::TotalValue);
    assert_eq!(by_function, rows([("fib", 7), ("main", 7)]));
    let by_file = top(&test, &By::File, Sort::TotalValue);
    assert_eq!(by_file, rows([("a.rb", 7)]));
    let top = Top::of(&test.profile, TIME, &By::Function);
    let fib = top.sorted(Sort::SelfValue)[0];
    assert_eq!((fib.self_samples, fib.total_samples), (1, 1));
}

#[test]
fn a_frame_named_as_a_state_is_one_function_with_it() {
    let mut test = TestProfile::wall();
    let frames = [("[GC marking]", "<GC>", 0, 0), ("work", "a.rb", 1, 1)];
    let node = node(&mut test.profile, &frames);
    let key = rperf_model::WeightKey {
        node,
        thread: 0,
        labels: LabelSetId(0),
        state: State::GcMarking,
    };
    test.profile.weights.push(key, &[1, 5, 5]);
    assert_eq!(
        top(&test, &By::Function, Sort::TotalValue),
        rows([("[GC marking]", 5), ("work", 5)])
    );
}

#[test]
fn methods_of_c_count_for_the_gem_that_calls_them() {
    const APP: TestFrame<'_> = ("<main>", "/srv/app.rb", 1, 1);
    const RACK: TestFrame<'_> = ("Rack#call", "/x/gems/rack-3.1.8/lib/rack.rb", 1, 1);
    const EACH: TestFrame<'_> = ("Array#each", "<internal:array>", 1, 1);
    const SORT: TestFrame<'_> = ("Array#sort", "<C method>", 0, 0);
    let mut test = TestProfile::wall();
    let stacks: [(&[TestFrame<'_>], State, i64); 6] = [
        (&[APP, SORT], State::Running, 1),
        (&[APP, RACK, EACH, SORT], State::Running, 20),
        (&[APP, RACK, EACH, APP, EACH], State::Running, 300),
        (&[APP, RACK], State::Running, 4_000),
        (&[APP, RACK, SORT], State::GvlBlocked, 50_000),
        (&[SORT, APP], State::Running, 600_000),
    ];
    for (frames, state, value) in stacks {
        let key = rperf_model::WeightKey {
            node: node(&mut test.profile, frames),
            thread: 0,
            labels: LabelSetId(0),
            state,
        };
        test.profile.weights.push(key, &[1, value, 0]);
    }
    let gems = |core, sort| top(&test, &By::Gem(core), sort);
    assert_eq!(
        gems(CoreMethods::Caller, Sort::SelfValue),
        rows([
            ("(application)", 600_301),
            ("<GVL>", 50_000),
            ("rack-3.1.8", 4_020)
        ])
    );
    assert_eq!(
        gems(CoreMethods::Caller, Sort::TotalValue),
        rows([
            ("(application)", 654_321),
            // Nobody calls it.
            ("<C method>", 600_000),
            ("rack-3.1.8", 54_320),
            ("<GVL>", 50_000)
        ])
    );
    assert_eq!(
        gems(CoreMethods::Apart, Sort::SelfValue),
        rows([
            ("(application)", 600_000),
            ("<GVL>", 50_000),
            ("rack-3.1.8", 4_000),
            ("<internal>", 300),
            ("<C method>", 21)
        ])
    );
}

#[test]
fn labels_and_threads_have_rows() {
    let mut test = TestProfile::wall();
    let users = test.labels(&[("request", "GET /users")]);
    test.add(&["main"], 1, users, State::Running, 30);
    test.add(&["main"], 2, users, State::GvlWait, 5);
    test.add(&["main"], 2, LabelSetId(0), State::Running, 10);
    test.add(&[], 0, LabelSetId(0), State::Running, 1);
    let by = By::Label("request".to_string());
    let expected = rows([("GET /users", 35), ("(no request)", 11)]);
    assert_eq!(top(&test, &by, Sort::SelfValue), expected);
    assert_eq!(
        top(&test, &By::Thread, Sort::SelfValue),
        rows([
            ("thread 1: thread 1", 30),
            ("thread 2: thread 2", 15),
            ("(ended threads)", 1)
        ])
    );
}

#[test]
fn threads_of_several_processes_have_their_numbers() {
    let mut test = TestProfile::wall();
    let [one, other] = ["7", "8"].map(|pid| test.labels(&[("%pid", pid)]));
    test.add(&["main"], 1, one, State::Running, 30);
    let by_thread = |test: &TestProfile| top(test, &By::Thread, Sort::SelfValue);
    assert_eq!(by_thread(&test), rows([("thread 1: thread 1", 30)]));
    test.add(&["main"], 2, other, State::Running, 20);
    test.add(&["main"], 3, LabelSetId(0), State::Running, 5);
    test.add(&[], 0, one, State::Running, 2);
    test.add(&[], 0, other, State::Running, 1);
    assert_eq!(
        by_thread(&test),
        rows([
            ("thread 1: thread 1 (PID 7)", 30),
            ("thread 2: thread 2 (PID 8)", 20),
            ("thread 3: thread 3", 5),
            ("(ended threads)", 3)
        ])
    );
}

#[test]
fn threads_and_states_have_rows_by_their_tags() {
    let mut test = TestProfile::wall();
    test.add(&["main"], 1, LabelSetId(0), State::Running, 30);
    test.add(&["main"], 2, LabelSetId(0), State::GvlWait, 5);
    test.add(&["main"], 3, LabelSetId(0), State::Running, 10);
    let name = test.profile.strings.intern("worker");
    let nameless = StringId::default();
    for (thread, name) in test.profile.threads.iter_mut().zip([name, name, nameless]) {
        thread.name = name;
    }
    let by = |key: &str| top(&test, &By::Label(key.to_string()), Sort::SelfValue);
    assert_eq!(by("thread"), rows([("worker", 35), ("(no name)", 10)]));
    assert_eq!(by("thread_seq"), rows([("1", 30), ("3", 10), ("2", 5)]));
    assert_eq!(by("%GVL"), rows([("(no %GVL)", 40), ("wait", 5)]));
}

#[test]
fn negative_values_stand_where_positive_ones_would() {
    let test = TestProfile::cpu()
        .with(&["main", "slower"], 1, State::Running, 20)
        .with(&["main", "faster"], 1, State::Running, -50);
    assert_eq!(
        top(&test, &By::Function, Sort::SelfValue),
        rows([("faster", -50), ("slower", 20)])
    );
}

#[test]
fn stacks_of_any_depth_are_walked() {
    let names: Vec<String> = (0..100_000)
        .map(|depth| format!("m{}", depth % 7))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let test = TestProfile::cpu().with(&names, 1, State::Running, 9);
    let rows = top(&test, &By::Function, Sort::TotalValue);
    assert_eq!(rows.len(), 7);
    assert!(rows.iter().all(|(_, value)| *value == 9));
    let empty = TestProfile::cpu();
    assert!(top(&empty, &By::Function, Sort::SelfValue).is_empty());
}

proptest! {
    #[test]
    fn rows_agree_with_counting_stack_by_stack(
        samples in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..6),
                prop::sample::select(State::ALL.to_vec()),
                1..1_000i64,
            ),
            0..20,
        )
    ) {
        let mut test = TestProfile::wall();
        let mut self_ns: BTreeMap<String, i64> = BTreeMap::new();
        let mut total_ns: BTreeMap<String, i64> = BTreeMap::new();
        for (names, state, ns) in &samples {
            test = test.with(names, 1, *state, *ns);
            let mut shown = names.clone();
            shown.extend(state.synthetic_frame().map(|(name, _)| name));
            if shown.is_empty() {
                shown.push("[no frames]");
            }
            *self_ns.entry(shown[shown.len() - 1].into()).or_default() += ns;
            for name in BTreeSet::from_iter(shown) {
                *total_ns.entry(name.into()).or_default() += ns;
            }
        }
        let flat = top(&test, &By::Function, Sort::SelfValue);
        prop_assert_eq!(BTreeMap::from_iter(flat), self_ns);
        let cumulative = top(&test, &By::Function, Sort::TotalValue);
        prop_assert!(cumulative.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        prop_assert_eq!(BTreeMap::from_iter(cumulative), total_ns);
        for by in [By::Function, By::File, By::Directory, By::Gem(CoreMethods::Caller), By::Thread, By::State] {
            let all: i64 = top(&test, &by, Sort::SelfValue).iter().map(|row| row.1).sum();
            prop_assert_eq!(all, Top::of(&test.profile, TIME, &by).total);
        }
    }
}

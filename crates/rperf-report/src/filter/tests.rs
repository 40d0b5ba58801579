//! Tests of the filters: by example, and that they split totals exactly.

use super::*;
use crate::top::{By, Sort, Top};
use proptest::prelude::*;
use rperf_model::frame_kind::OP;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{TestFrame, node};
use rperf_model::{Column, LabelSetId, State};

const TIME: Column = Column(1);

fn some(text: &str) -> Option<Regex> {
    Some(regex(text).expect("an expression"))
}

/// The stacks that are left, root first, with their times.
fn stacks(profile: &Profile) -> Vec<(String, i64)> {
    assert_eq!(profile.check(), Ok(()));
    let mut stacks: Vec<_> = profile
        .weights
        .iter()
        .map(|row| {
            let frames = profile.display_stack(row.key);
            let mut names: Vec<_> = frames.map(|it| profile.frame_text(it).name).collect();
            names.reverse();
            (names.join(";"), row.value(TIME))
        })
        .collect();
    stacks.sort();
    stacks
}

fn left(profile: &Profile, filter: &Filter) -> Vec<(String, i64)> {
    stacks(&filter.apply(profile.clone()).profile)
}

fn expected<const N: usize>(rows: [(&str, i64); N]) -> Vec<(String, i64)> {
    rows.map(|(stack, value)| (stack.to_string(), value))
        .to_vec()
}

fn example() -> Profile {
    let mut test = TestProfile::wall().raw();
    let users = test.labels(&[("request", "GET /users"), ("%pid", "7")]);
    let posts = test.labels(&[("request", "GET /posts"), ("%pid", "8")]);
    test.add(&["main", "a", "b"], 1, users, State::Running, 10);
    test.add(&["main", "a", "c"], 1, posts, State::Running, 20);
    test.add(&["main", "c"], 2, users, State::GvlWait, 30);
    test.add(&["main"], 2, LabelSetId(0), State::Running, 40);
    test.profile
}

#[test]
fn a_frame_that_is_hidden_takes_its_calls_along_and_leaves_its_time() {
    let types = [("calls", "count"), ("wall", "nanoseconds")];
    let schema = rperf_model::test_support::schema(&types, 1);
    let mut test = TestProfile::new(schema);
    test.add(&["main", "a"], 1, LabelSetId(0), State::Running, 5);
    test.add(&["main", "a", "b"], 1, LabelSetId(0), State::Running, 7);
    for (filter, calls) in [
        (Filter::default(), 2),
        (
            Filter {
                hide: some("^b$"),
                ..Filter::default()
            },
            1,
        ),
        (
            Filter {
                show: some("^(main|b)$"),
                ..Filter::default()
            },
            1,
        ),
    ] {
        let left = filter.apply(test.profile.clone()).profile;
        assert_eq!((left.sum(Column(0)), left.sum(TIME)), (calls, 12));
    }
}

#[test]
fn the_time_of_ops_that_are_hidden_is_that_of_their_callers() {
    const QUERY: TestFrame<'_> = ("[SQL] item", OP, 0, 0);
    const CALLER: TestFrame<'_> = ("DB#exec", "/app/db.rb", 1, 2);
    let mut test = TestProfile::wall();
    for (frames, state, wall) in [
        (&[CALLER, QUERY][..], State::GvlBlocked, 3),
        (&[CALLER, QUERY], State::Running, 20),
        (&[CALLER], State::Running, 100),
        (&[QUERY], State::Running, 1_000),
    ] {
        let key = WeightKey {
            node: node(&mut test.profile, frames),
            thread: 0,
            labels: LabelSetId(0),
            state,
        };
        test.profile.weights.push(key, &[1, wall, 0]);
    }
    let filter = Filter {
        hides_ops: true,
        ..Filter::default()
    };
    assert_eq!(
        left(&test.profile, &filter),
        expected([("DB#exec", 120), ("DB#exec;[GVL blocked]", 3)])
    );
    assert_eq!(filter.apply(test.profile).unmatched, [""; 0]);
    assert_eq!(filter.apply(example()).unmatched, ["--hide-ops"]);
}

#[test]
fn focus_and_ignore_choose_stacks_by_any_frame() {
    let profile = example();
    let filter = Filter {
        focus: some("^(b|c)$"),
        ignore: some("<GVL>"),
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([("main;a;b", 10), ("main;a;c", 20)])
    );
    let filter = Filter {
        focus: some(r"a\.rb"),
        ..Filter::default()
    };
    assert_eq!(left(&profile, &filter), stacks(&profile));
}

#[test]
fn hide_and_show_choose_frames() {
    let profile = example();
    let filter = Filter {
        hide: some("^(a|main)$|GVL"),
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([("b", 10), ("c", 20), ("c", 30)])
    );
    let filter = Filter {
        show: some("^a$|GVL"),
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([("[GVL wait]", 30), ("a", 10), ("a", 20)])
    );
    let filter = Filter {
        show_from: some("^(a|c)$"),
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([("a;b", 10), ("a;c", 20), ("c;[GVL wait]", 30)])
    );
}

#[test]
fn tags_threads_and_processes_choose_samples() {
    let profile = example();
    let tag = |text| TagFilter::new(text).expect("a filter");
    let focus = |text| Filter {
        tag_focus: vec![tag(text)],
        ..Filter::default()
    };
    let total = |filter: &Filter| filter.apply(profile.clone()).profile.sum(TIME);
    assert_eq!(total(&focus("request=users")), 40);
    assert_eq!(total(&focus("%GVL=wait")), 30);
    assert_eq!(total(&focus("thread_seq=2")), 70);
    assert_eq!(total(&focus("thread=thread 1")), 30);
    let ignore = Filter {
        tag_ignore: vec![tag("request")],
        ..Filter::default()
    };
    assert_eq!(total(&ignore), 40);
    let several = Filter {
        tag_focus: ["request=users", "thread_seq=2"].map(tag).into(),
        ..Filter::default()
    };
    assert_eq!(total(&several), 30);
    let either = Filter {
        tag_ignore: ["request=posts", "%GVL=wait"].map(tag).into(),
        ..Filter::default()
    };
    assert_eq!(total(&either), 50);
    let both = Filter {
        tag_focus: ["request=users", "request=posts"].map(tag).into(),
        ..Filter::default()
    };
    assert_eq!(both.apply(profile.clone()).unmatched, ["--tagfocus"]);
    let thread = |text| Filter {
        thread: Some(ThreadFilter::new(text).expect("a filter")),
        ..Filter::default()
    };
    assert_eq!(total(&thread("2")), 70);
    assert_eq!(total(&thread("^thread 1$")), 30);
    let pid = Filter {
        pid: Some(8),
        ..Filter::default()
    };
    assert_eq!(total(&pid), 20);
}

#[test]
fn tags_become_frames() {
    let profile = example();
    let filter = Filter {
        tag_root: vec!["request".into(), "thread_seq".into()],
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([
            ("(no request);2;main", 40),
            ("GET /posts;1;main;a;c", 20),
            ("GET /users;1;main;a;b", 10),
            ("GET /users;2;main;c;[GVL wait]", 30),
        ])
    );
    let filter = Filter {
        tag_leaf: vec!["request".into()],
        focus: some("GET"),
        ..Filter::default()
    };
    assert_eq!(
        left(&profile, &filter),
        expected([
            ("main;a;b;GET /users", 10),
            ("main;a;c;GET /posts", 20),
            ("main;c;[GVL wait];GET /users", 30),
        ])
    );
}

#[test]
fn what_matches_nothing_is_told() {
    let filter = Filter {
        focus: some("nobody"),
        hide: some("main"),
        tag_focus: vec![TagFilter::new("request=nothing").expect("a filter")],
        tag_root: vec!["job".into()],
        ..Filter::default()
    };
    let filtered = filter.apply(example());
    let unmatched = ["--tagroot", "--tagfocus", "--focus"];
    assert_eq!(filtered.unmatched, unmatched);
    assert!(filtered.profile.weights.is_empty());
    assert!(Filter::default().is_empty() && !filter.is_empty());
}

proptest! {
    #[test]
    fn focus_and_ignore_split_a_profile(
        samples in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5),
                prop::sample::select(State::ALL.to_vec()),
                1..1_000i64,
            ),
            0..20,
        ),
        text in prop::sample::select(vec!["a", "a|b", "GVL", "GC", "frames", "x"]),
    ) {
        let mut test = TestProfile::wall().raw();
        for (names, state, ns) in &samples {
            test = test.with(names, 1, *state, *ns);
        }
        let kept = Filter { focus: some(text), ..Filter::default() };
        let dropped = Filter { ignore: some(text), ..Filter::default() };
        let all = [kept, dropped].map(|filter| {
            let profile = filter.apply(test.profile.clone()).profile;
            assert_eq!(profile.check(), Ok(()));
            profile
        });
        for column in [Column(0), TIME] {
            let sums: i64 = all.iter().map(|profile| profile.sum(column)).sum();
            prop_assert_eq!(sums, test.profile.sum(column));
        }
        let total = |profile: &Profile, name: &str| {
            let top = Top::of(profile, TIME, &By::Function);
            let rows = top.sorted(Sort::TotalValue);
            rows.iter().find(|row| row.function.name == name).map_or(0, |row| row.total_value)
        };
        for name in ["a", "b", "c", "[GVL wait]"] {
            let parts: i64 = all.iter().map(|profile| total(profile, name)).sum();
            prop_assert_eq!(parts, total(&test.profile, name));
        }
    }
}

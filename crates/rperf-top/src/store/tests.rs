//! The store's sums, and what becomes of them.

use super::*;
use proptest::prelude::*;

fn store(rows: &[(u8, u8, u32)]) -> (Store, u32) {
    let mut store = Store::default();
    let process = store.add_process(7, "app");
    add(&mut store, process, rows);
    (store, process)
}

fn add(store: &mut Store, process: u32, rows: &[(u8, u8, u32)]) {
    store.begin_interval(process);
    for &(stack, thread, ns) in rows {
        let mut node = 0;
        for bit in 0..4 {
            let method = store.method_number(if stack >> bit & 1 == 0 { "a" } else { "b" }, "x.rb");
            node = store.node(node, method);
        }
        let key = RowKey {
            node,
            thread: store.thread(process, u32::from(thread % 4)),
            labels: 0,
            state: State::ALL[usize::from(stack >> 4) % 5],
        };
        store.add(key, ns.into());
    }
    store.end_interval(process, 1_000_000_000, 0);
    store.end_round();
}

#[test]
fn recursion_counts_once() {
    let (store, _) = store(&[(0, 1, 10)]);
    let outermost = store.nodes.iter().filter(|it| it.is_outermost).count();
    assert_eq!((store.nodes.len(), outermost), (5, 1));
    let sums = store.sums(Scope::Total, None, None);
    assert_eq!((sums.all().run, sums.own[4].run), (10, 10));
}

#[test]
fn an_interval_is_a_rate_and_the_mark_divides() {
    let (mut store, process) = store(&[(0, 1, 10)]);
    store.set_mark();
    add(&mut store, process, &[(0, 1, 30)]);
    let all = |scope| store.sums(scope, None, None).all().run;
    assert_eq!(
        (all(Scope::Rate), all(Scope::Total), all(Scope::SinceMark)),
        (30, 40, 30)
    );
    store.begin_interval(process);
    assert_eq!(store.sums(Scope::Rate, None, None).all().run, 0);
}

#[test]
fn the_last_interval_stays_until_another_program_comes_in() {
    let (mut store, first) = store(&[(0, 1, 10)]);
    let second = store.add_process(8, "other");
    add(&mut store, second, &[(0, 1, 30), (0, 2, 5)]);
    let run = |store: &Store, scope| store.sums(scope, None, None).all().run;
    store.end_process(first);
    assert_eq!(
        (run(&store, Scope::Rate), run(&store, Scope::Total)),
        (35, 45)
    );
    store.end_process(second);
    store.end_round();
    assert_eq!(run(&store, Scope::Rate), 35);
    assert!(store.figures().busy > 0.0);
    store.add_process(9, "next");
    assert_eq!(
        (run(&store, Scope::Rate), run(&store, Scope::Total)),
        (0, 45)
    );
    let threads = store
        .rows
        .iter()
        .map(|row| store.threads[row.key.thread as usize].seq);
    assert!(threads.eq([0, 0]), "{:?}", store.rows);
}

#[test]
fn a_program_of_which_nothing_is_known_counts_as_one_that_does_not_run() {
    let (mut store, process) = store(&[(0, 1, 500_000_000)]);
    assert!((store.figures().busy - 0.5).abs() < 1e-9);
    let idle = store.add_process(8, "idle");
    store.end_round();
    assert!((store.figures().busy - 0.25).abs() < 1e-9);
    assert!(!store.is_unknown());
    store.begin_interval(process);
    assert!(store.is_unknown());
    store.end_process(process);
    store.end_process(idle);
    assert!(!store.is_unknown());
}

#[test]
fn a_profile_has_what_has_the_label() {
    let store = crate::screens_tests::store();
    let sum = |filter: Option<&LabelFilter>| {
        let profile = store.profile(Scope::Total, filter)?;
        Some(profile.weights.iter().map(|it| it.values[0]).sum::<i64>())
    };
    let label = |value: &str| (Arc::from("endpoint"), Arc::from(value));
    let part = sum(Some(&label("GET /"))).expect("a profile");
    assert_eq!(part, 3 * 100_000_000);
    assert!(sum(None).expect("a profile") > part);
    assert_eq!(sum(Some(&label("GET /none"))), None);
}

proptest! {
    #[test]
    fn folding_threads_loses_nothing(
        before in proptest::collection::vec(any::<(u8, u8, u32)>(), 0..40),
        after in proptest::collection::vec(any::<(u8, u8, u32)>(), 0..40),
        ended in any::<[bool; 4]>(),
    ) {
        let (mut store, process) = store(&before);
        store.set_mark();
        add(&mut store, process, &after);
        let all = |store: &Store| {
            [Scope::Rate, Scope::Total, Scope::SinceMark].map(|it| store.sums(it, None, None).all())
        };
        let expected = all(&store);
        store.fold(process, |seq| ended[seq as usize]);
        prop_assert_eq!(all(&store), expected);
        for row in &store.rows {
            let seq = store.threads[row.key.thread as usize].seq;
            prop_assert!(seq == 0 || !ended[seq as usize]);
        }
        store.begin_interval(process);
        prop_assert_eq!(store.sums(Scope::Rate, None, None).all(), Times::default());
        if let Some(profile) = store.profile(Scope::Total, None) {
            prop_assert_eq!(profile.check(), Ok(()));
        }
    }
}

#[test]
fn a_thread_that_goes_nowhere_is_told_with_how_long() {
    let (mut store, process) = store(&[(0x20, 1, 1_000), (0, 2, 600), (1, 2, 400)]);
    add(&mut store, process, &[(0x20, 1, 1_000), (0, 2, 1_000)]);
    let [one, two] = [1, 2].map(|seq| store.thread(process, seq));
    assert_eq!(store.positions[&one].ns, 2_000);
    assert_eq!(store.positions[&two].ns, 1_000, "it has moved before");
    add(
        &mut store,
        process,
        &[(0x20, 1, 900), (0x20, 2, 1), (1, 1, 100)],
    );
    assert_eq!((store.positions[&one].ns, store.positions[&two].ns), (0, 1));
    add(&mut store, process, &[]);
    assert!(store.positions.is_empty());
}

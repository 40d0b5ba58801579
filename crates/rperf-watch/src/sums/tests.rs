//! The sums, and what becomes of them.

use super::*;
use proptest::prelude::*;
use rperf_model::shared_sums::SumsValues;
use rperf_model::{Column, Mode, OwnColumn, State};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn wall(wall_ns: u64) -> SumsValues {
    SumsValues {
        count: 1,
        wall_ns,
        cpu_ns: 0,
        blame_ns: 0,
    }
}

fn sums(rows: &[(u8, u8, u32)]) -> (Sums, u32) {
    let mut sums = Sums::default();
    let process = sums.add_process(7, "app");
    add(&mut sums, process, rows);
    (sums, process)
}

fn add(sums: &mut Sums, process: u32, rows: &[(u8, u8, u32)]) {
    sums.begin_interval(process);
    for &(stack, thread, ns) in rows {
        let mut number = 0;
        for bit in 0..4 {
            let name = if stack >> bit & 1 == 0 { "a" } else { "b" };
            let frame = sums.frame(name, "x.rb", 0).expect("room");
            number = sums.stack(number, frame, 7).expect("room");
        }
        let key = RowKey {
            stack: number,
            thread: sums.thread(process, u32::from(thread % 4)),
            labels: 0,
            state: State::ALL[usize::from(stack >> 4) % 5],
        };
        sums.add(key, wall(ns.into()));
    }
    sums.end_interval(process, 1_000_000_000, 0);
    sums.end_round();
}

#[test]
fn recursion_counts_once() {
    let (sums, _) = sums(&[(0, 1, 10)]);
    assert_eq!(sums.nodes.len(), 5);
    let times = sums.node_times(Scope::Total, None, None);
    assert_eq!((times.all().run, times.own[4].run), (10, 10));
    let (methods, _) = sums.method_times(Scope::Total, None, None);
    assert_eq!(
        (methods.len(), methods[0].own.run, methods[0].total.run),
        (1, 10, 10)
    );
}

/// A new node costs the same, however many callers it has.
#[test]
fn stacks_may_be_deep() {
    let (mut sums, process) = sums(&[]);
    let (mut stack, mut frames) = (0, Vec::new());
    let began = Instant::now();
    for number in 0..200_000 {
        let name = number.to_string();
        frames.push(sums.frame(&name, "x.rb", 0).expect("room"));
        stack = sums.stack(stack, frames[number], 0).expect("room");
    }
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    // The outermost method once more.
    stack = sums.stack(stack, frames[0], 0).expect("room");
    let key = RowKey {
        stack,
        thread: sums.thread(process, 1),
        labels: 0,
        state: State::Running,
    };
    sums.add(key, wall(5));
    let (methods, all) = sums.method_times(Scope::Total, None, None);
    assert_eq!((methods.len(), all.run), (200_000, 5));
    assert!(methods.iter().all(|it| it.total.run == 5));
    assert_eq!(methods[0].own.run, 5);
}

#[test]
fn an_interval_is_a_rate_and_the_mark_divides() {
    let (mut sums, process) = sums(&[(0, 1, 10)]);
    sums.set_mark();
    add(&mut sums, process, &[(0, 1, 30)]);
    let all = |scope| sums.node_times(scope, None, None).all().run;
    assert_eq!(
        (all(Scope::Rate), all(Scope::Total), all(Scope::SinceMark)),
        (30, 40, 30)
    );
    sums.begin_interval(process);
    assert_eq!(sums.node_times(Scope::Rate, None, None).all().run, 0);
}

#[test]
fn blame_is_no_time_and_goes_with_it() {
    let (mut sums, process) = sums(&[(0, 1, 10)]);
    sums.processes[process as usize].facts.mode = Mode::Wall;
    let blamed = |sums: &mut Sums, wall_ns, blame_ns| {
        let key = sums.rows[0].key;
        sums.begin_interval(process);
        let values = SumsValues {
            blame_ns,
            ..wall(wall_ns)
        };
        sums.add(key, values);
        sums.end_interval(process, 500_000_000, 0);
    };
    blamed(&mut sums, 40, 70);
    let times = |sums: &Sums, scope| {
        let all = sums.node_times(scope, None, None).all();
        (all.run, all.blame, all.all())
    };
    assert_eq!(times(&sums, Scope::Rate), (80, 140, 80));
    sums.set_mark();
    // What was to blame may be known later than its time.
    blamed(&mut sums, 0, 5);
    assert_eq!(times(&sums, Scope::Rate), (0, 10, 0));
    assert_eq!(times(&sums, Scope::SinceMark), (0, 5, 0));
    assert_eq!(times(&sums, Scope::Total), (50, 75, 50));
    let position = sums.threads.position(sums.rows[0].key.thread);
    assert_eq!(position, None, "the thread has had no time");
    let profile = |sums: &Sums| {
        let profile = sums.profile(Extent::Watched, None).expect("something");
        let blame = profile.schema.find_own(OwnColumn::GvlBlame);
        blame.map(|it| profile.weights.get(0).expect("a row").value(it))
    };
    assert_eq!(profile(&sums), None);
    sums.processes[process as usize].facts.blames = true;
    assert_eq!(profile(&sums), Some(75));
}

#[test]
fn the_last_interval_stays_until_another_program_comes_in() {
    let (mut sums, first) = sums(&[(0, 1, 10)]);
    let second = sums.add_process(8, "other");
    add(&mut sums, second, &[(0, 1, 30), (0, 2, 5)]);
    let run = |sums: &Sums, scope| sums.node_times(scope, None, None).all().run;
    sums.end_process(first);
    assert_eq!(
        (run(&sums, Scope::Rate), run(&sums, Scope::Total)),
        (35, 45)
    );
    sums.end_process(second);
    sums.end_round();
    assert_eq!(run(&sums, Scope::Rate), 35);
    assert!(sums.figures().busy > 0.0);
    sums.add_process(9, "next");
    assert_eq!((run(&sums, Scope::Rate), run(&sums, Scope::Total)), (0, 45));
    let threads = sums
        .rows
        .iter()
        .map(|row| sums.threads[row.key.thread as usize].seq);
    assert!(threads.eq([0, 0]), "{:?}", sums.rows);
}

#[test]
fn a_program_of_which_nothing_is_known_counts_as_one_that_does_not_run() {
    let (mut sums, process) = sums(&[(0, 1, 500_000_000)]);
    assert!((sums.figures().busy - 0.5).abs() < 1e-9);
    let idle = sums.add_process(8, "idle");
    sums.end_round();
    assert!((sums.figures().busy - 0.25).abs() < 1e-9);
    assert!(!sums.is_unknown());
    sums.begin_interval(process);
    assert!(sums.is_unknown());
    sums.end_process(process);
    sums.end_process(idle);
    assert!(!sums.is_unknown());
}

#[test]
fn a_profile_has_what_has_the_label() {
    let (mut sums, process) = sums(&[(0, 1, 10)]);
    let labels = sums.label_set([("endpoint", "GET /")].into_iter());
    let key = RowKey {
        labels: labels.expect("room"),
        ..sums.rows[0].key
    };
    let values = SumsValues {
        count: 3,
        wall_ns: 30,
        cpu_ns: 20,
        blame_ns: 0,
    };
    sums.add(key, values);
    sums.end_interval(process, 5, 0);
    let columns = |filter: Option<&Label>| {
        let profile = sums.profile(Extent::Watched, filter)?;
        assert_eq!((profile.check(), profile.tree.len()), (Ok(()), 4));
        Some([0, 1, 2].map(|it| profile.sum(Column(it))))
    };
    let label = |value: &str| (Arc::from("endpoint"), Arc::from(value));
    assert_eq!(columns(Some(&label("GET /"))), Some([3, 30, 20]));
    assert_eq!(columns(None), Some([4, 40, 20]));
    assert_eq!(columns(Some(&label("GET /none"))), None);
    let profile = sums.profile(Extent::Watched, None).expect("one");
    let lines: Vec<_> = profile.tree.iter().map(|(_, node)| node.line).collect();
    assert_eq!(lines, [7; 4]);
}

#[test]
fn a_profile_has_the_columns_of_all_programs_with_rows() {
    let (mut sums, of_cpu) = sums(&[(0, 1, 10)]);
    sums.processes[of_cpu as usize].facts.mode = Mode::Cpu;
    let of_wall = sums.add_process(8, "other");
    sums.processes[of_wall as usize].facts.mode = Mode::Wall;
    let profile = |sums: &Sums, extent| {
        let profile = sums.profile(extent, None).expect("one");
        (profile.schema.len(), profile.meta.program.clone())
    };
    assert_eq!(profile(&sums, Extent::Watched), (2, "app".to_string()));
    sums.set_mark();
    add(&mut sums, of_wall, &[(0, 1, u32::MAX)]);
    assert_eq!(profile(&sums, Extent::Watched), (3, "app".to_string()));
    assert_eq!(profile(&sums, Extent::SinceMark), (3, "other".to_string()));
}

#[test]
fn times_beyond_all_measure_are_the_greatest() {
    let (mut sums, process) = sums(&[(0, 1, 10)]);
    for _ in 0..2 {
        sums.end_interval(process, u64::MAX, 0);
    }
    assert_eq!(sums.processes[process as usize].time.watched_ns(), u64::MAX);
}

#[test]
fn a_text_is_there_once_however_many_have_it() {
    let mut sums = Sums::default();
    for (name, path) in [
        ("a", "x.rb"),
        ("b", "x.rb"),
        ("a", "y.rb"),
        ("a", "y\u{1b}.rb"),
    ] {
        assert!(sums.frame(name, path, 1).is_some());
    }
    for value in ["1", "2"] {
        assert!(sums.label_set([("a", value)].into_iter()).is_some());
    }
    let mut asked = Vec::new();
    let asked_for = std::cell::RefCell::new(&mut asked);
    sums.shorten(|path| {
        asked_for.borrow_mut().push(path.to_string());
        "short".into()
    });
    assert_eq!(asked, ["x.rb", "y.rb", "y .rb"]);
    let [a, b, in_y, _] = &*sums.methods else {
        panic!("{:?}", sums.methods);
    };
    assert!(Arc::ptr_eq(&a.path, &b.path) && Arc::ptr_eq(&a.short_path, &b.short_path));
    assert!(Arc::ptr_eq(&a.name, &in_y.name));
    let keys = sums.labels[1..].iter().map(|set| &set[0].0);
    assert!(
        keys.clone().all(|key| Arc::ptr_eq(key, &a.name)),
        "{keys:?}"
    );
}

proptest! {
    #[test]
    fn folding_threads_loses_nothing(
        before in proptest::collection::vec(any::<(u8, u8, u32)>(), 0..40),
        after in proptest::collection::vec(any::<(u8, u8, u32)>(), 0..40),
        ended in any::<[bool; 4]>(),
    ) {
        let (mut sums, process) = sums(&before);
        sums.set_mark();
        add(&mut sums, process, &after);
        let all = |sums: &Sums| {
            [Scope::Rate, Scope::Total, Scope::SinceMark]
                .map(|it| sums.node_times(it, None, None).all())
        };
        let expected = all(&sums);
        let seqs: Vec<_> = sums.threads.iter().map(|it| it.seq as usize).collect();
        sums.fold(process, |thread| ended[seqs[thread as usize]]);
        prop_assert_eq!(all(&sums), expected);
        for row in &sums.rows {
            let seq = sums.threads[row.key.thread as usize].seq;
            prop_assert!(seq == 0 || !ended[seq as usize]);
        }
        sums.begin_interval(process);
        prop_assert_eq!(sums.node_times(Scope::Rate, None, None).all(), Times::default());
        if let Some(profile) = sums.profile(Extent::Watched, None) {
            prop_assert_eq!(profile.check(), Ok(()));
        }
    }
}

#[test]
fn a_thread_that_goes_nowhere_is_told_with_how_long() {
    let (mut sums, process) = sums(&[(0x20, 1, 1_000), (0, 2, 600), (1, 2, 400)]);
    add(&mut sums, process, &[(0x20, 1, 1_000), (0, 2, 1_000)]);
    let [one, two] = [1, 2].map(|seq| sums.thread(process, seq));
    let there = |sums: &Sums| [one, two].map(|it| sums.threads.position(it).map(|it| it.ns));
    // The second one has moved before.
    assert_eq!(there(&sums), [Some(2_000), Some(1_000)]);
    add(
        &mut sums,
        process,
        &[(0x20, 1, 900), (0x20, 2, 1), (1, 1, 100)],
    );
    assert_eq!(there(&sums), [Some(0), Some(1)]);
    add(&mut sums, process, &[]);
    assert_eq!(there(&sums), [None, None]);
}

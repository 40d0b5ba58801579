//! Epochs of a session, with stacks that the test makes up.

use super::*;
use crate::collect::messages::WorkerEnded;
use crate::recording::SampleStack;
use crate::session::snapshot::Taken;
use crate::timer::sources::TimerKind;
use crate::{DEFAULT_MAX_NODES, Mode, NO_OVERHEAD_LIMIT, Pace, Snapshot};
use proptest::prelude::*;
use rperf_model::Profile;
use rperf_vm::{CapturedNode, FrameNames, LabelSet, NativeId, ResolvedFrame, Stack};

mod full_trees;
mod kept_requests;

/// Records a sample of 10 ns at `stack`.
fn record(session: &mut Session, stack: &[FrameWord], labels: Option<&LabelSet>) {
    let pace = Arc::new(Pace::new(1_000_000));
    let mut accounting = Accounting::new(1, Mode::Wall, &pace, 0, 0);
    accounting.begin_running(0);
    let dues = accounting.sample(10, 10, 0, || 1);
    let position = Position {
        stack: Some(SampleStack::Frames(Stack {
            frames: stack,
            lines: &[],
            cut: false,
        })),
        last: &mut LastStack::default(),
        labels,
    };
    session.record(0, &mut accounting, dues, position);
}

fn config() -> SessionConfig {
    SessionConfig {
        mode: Mode::Wall,
        blames: false,
        judges: false,
        frequency: 1000,
        max_overhead: NO_OVERHEAD_LIMIT,
        max_nodes: DEFAULT_MAX_NODES,
        timer: TimerKind::Sleep,
        aggregate: true,
    }
}

fn session() -> Session {
    Session::start(config(), || ()).expect("a worker")
}

fn record_new_frames(session: &mut Session, next: &mut usize, samples: usize) {
    for _ in 0..samples {
        *next += 1;
        record(session, &[*next, 1], None);
    }
}

fn method(name: &str) -> ResolvedFrame {
    ResolvedFrame {
        name: name.into(),
        path: "app.rb".into(),
        first_line: 1,
    }
}

fn names(count: usize) -> Vec<Arc<ResolvedFrame>> {
    let name = Arc::new(method("method"));
    vec![name; count]
}

/// Names `some` of the frames of the ending epoch. Returns how many there were.
fn name_frames(session: &mut Session, some: usize) -> usize {
    // The code is new each time, its name is not.
    let named = (0..some).map_while(|_| {
        let frame = session.next_unnamed()?;
        session.name(frame, method(if frame == 1 { "main" } else { "template" }));
        Some(frame)
    });
    let named = named.count();
    session.end_epoch_if_named(1_000);
    named
}

fn end_epoch(session: &mut Session) -> usize {
    session.begin_epoch_end();
    let named = name_frames(session, usize::MAX);
    assert!(!session.is_ending());
    named
}

/// All that was taken, with its nodes.
fn complete(taken: Result<(Taken, FrameNames), WorkerEnded>) -> (Snapshot, Vec<CapturedNode>) {
    let taken = taken.and_then(|(taken, _)| taken.complete());
    taken.expect("the worker lives")
}

/// The profile of what was taken; all its methods have one name.
fn profile(taken: Result<(Taken, FrameNames), WorkerEnded>) -> Profile {
    let (taken, mut frames) = taken.expect("the worker lives");
    while let Some(frame) = frames.next() {
        frames.add(frame, method("method"));
    }
    let (snapshot, nodes) = taken.complete().expect("the worker lives");
    let profile = snapshot.into_profile(&nodes, frames.names(), String::new(), Vec::new());
    assert_eq!(profile.check(), Ok(()));
    profile
}

fn total(profile: &Profile) -> i64 {
    profile.sum(profile.schema.default_column())
}

#[test]
fn epochs_end_as_frames_come_without_end_but_not_too_often() {
    let mut session = session();
    let mut next = 1;
    record_new_frames(&mut session, &mut next, 100);
    assert!(
        !session.is_epoch_over(u64::MAX),
        "some frames are new at first"
    );
    record_new_frames(&mut session, &mut next, 100);
    assert!(session.is_epoch_over(u64::MAX));
    assert_eq!(end_epoch(&mut session), 201);
    assert_eq!(session.frames().count(), 0, "nothing is kept alive");
    let ended = clock::monotonic_ns();
    record_new_frames(&mut session, &mut next, 400);
    assert!(!session.is_epoch_over(session.epoch.no_end_before - 1));
    assert!(session.epoch.no_end_before >= ended);
    assert!(session.is_epoch_over(session.epoch.no_end_before));
    end_epoch(&mut session);
    let profile = profile(session.stop(clock::monotonic_ns()));
    assert_eq!((total(&profile), profile.frames.len()), (6_000, 2));
}

#[test]
fn an_epoch_ends_little_by_little_while_the_session_goes_on() {
    let mut session = session();
    let mut next = 1;
    record_new_frames(&mut session, &mut next, 200);
    session.begin_epoch_end();
    for round in 1..=4 {
        assert!(session.is_ending() && !session.is_epoch_over(u64::MAX));
        // These belong to the next epoch, though the last one has no names yet.
        record_new_frames(&mut session, &mut next, 2_000);
        let unnamed = 201 - 50 * (round - 1);
        let present = 1 + 2_000 * round;
        assert_eq!(
            session.frames().count(),
            unnamed + present,
            "all stay alive"
        );
        assert_eq!(name_frames(&mut session, 50), 50);
    }
    assert_eq!(name_frames(&mut session, 50), 1);
    assert!(!session.is_ending());
    assert_eq!(end_epoch(&mut session), 8_001);
    record_new_frames(&mut session, &mut next, 5);
    let profile = profile(session.stop(clock::monotonic_ns()));
    let names = profile.frames.iter();
    let names: Vec<&str> = names.map(|(_, it)| profile.strings.get(it.name)).collect();
    assert_eq!(total(&profile), 10 * (200 + 8_000 + 5));
    assert_eq!(names, ["main", "template", "method"]);
}

#[test]
fn frames_have_to_be_named_once_as_long_as_the_call_tree_stays() {
    let mut session = session();
    let mut next = 1;
    let mut unnamed = Vec::new();
    for _ in 0..3 {
        record_new_frames(&mut session, &mut next, 10);
        let epoch = session.epoch();
        let (taken, mut frames) = session.snapshot(0, Vec::new()).expect("the worker lives");
        unnamed.push(frames.unnamed().len());
        while let Some(frame) = frames.next() {
            frames.add(frame, method("method"));
        }
        session.learn_names(epoch, &frames);
        // Out of date: somebody else was faster.
        session.learn_names(epoch, &FrameNames::default());
        let (snapshot, nodes) = taken.complete().expect("the worker lives");
        let profile = snapshot.into_profile(&nodes, frames.names(), String::new(), Vec::new());
        assert_eq!(profile.check(), Ok(()));
    }
    assert_eq!(unnamed, [11, 10, 10]);
    let epoch = session.epoch();
    let (_, frames) = session.clear(0, 1).expect("the worker lives");
    assert_eq!(frames.next(), None);
    session.learn_names(epoch, &frames);
    record_new_frames(&mut session, &mut next, 10);
    let (_, frames) = session.snapshot(0, Vec::new()).expect("the worker lives");
    assert_eq!(frames.unnamed().len(), 11, "another tree");
}

proptest! {
    /// Each step records some samples, which fill buffers or don't, and takes something: nothing
    /// is lost or comes twice, though what was taken is completed later, in any order.
    #[test]
    fn what_is_taken_adds_up_to_what_was_recorded(
        steps in prop::collection::vec((0usize..9_000, 0u8..4), 1..8),
        order: u64,
    ) {
        let mut session = session();
        let (mut next, mut recorded, mut reported) = (1, 0, 0);
        let (mut cleared, mut reports) = (Vec::new(), Vec::new());
        for (samples, kind) in steps {
            record_new_frames(&mut session, &mut next, samples);
            recorded += 10 * samples as i64;
            reported += 10 * samples as i64;
            match kind {
                0 => cleared.push(session.clear(0, 1)),
                1 => reports.push((reported, session.snapshot(0, Vec::new()))),
                2 => drop(end_epoch(&mut session)),
                _ => {}
            }
            if kind == 0 {
                reported = 0;
            }
        }
        cleared.push(session.stop(0));
        if order % 2 == 0 {
            cleared.reverse();
        }
        let dropped = |snapshot: &Snapshot| snapshot.counted.dropped.times.wall_ns as i64;
        for (expected, report) in reports {
            let (snapshot, _) = complete(report);
            let sums = snapshot.collected.sums.values();
            let sum: u64 = sums.map(|values| values.times.wall_ns).sum();
            prop_assert!(sum as i64 + dropped(&snapshot) <= expected);
        }
        let mut sum = 0;
        for taken in cleared {
            let (taken, frames) = taken.expect("the worker lives");
            let (snapshot, nodes) = taken.complete().expect("the worker lives");
            sum += dropped(&snapshot);
            let names = names(frames.unnamed().len());
            let profile = snapshot.into_profile(&nodes, &names, String::new(), Vec::new());
            prop_assert_eq!(profile.check(), Ok(()));
            sum += total(&profile);
        }
        prop_assert_eq!(sum, recorded);
    }
}

#[test]
fn what_is_cleared_is_in_one_snapshot_only() {
    let mut session = session();
    let mut next = 1;
    session.new_thread(0);
    let mut start = clock::monotonic_ns();
    session.begin(start);
    let mut totals = Vec::new();
    for round in 1..=3 {
        record_new_frames(&mut session, &mut next, 200);
        // Part of it has names already.
        end_epoch(&mut session);
        record_new_frames(&mut session, &mut next, round);
        session.count_sampling(0, StackCounts::running(5), 50);
        let now = clock::monotonic_ns();
        let (taken, frames) = session.clear(now, 1).expect("the worker lives");
        assert_eq!(frames.unnamed().len(), round + 1);
        assert_eq!(session.frames().count(), 0, "nothing is kept alive");
        let (snapshot, nodes) = taken.complete().expect("the worker lives");
        assert_eq!(
            (snapshot.period.start_ns, snapshot.period.end_ns),
            (start, now)
        );
        start = now;
        assert_eq!(snapshot.counted.counters.sampling_count, 5);
        assert_eq!(snapshot.counted.counters.threads, 1);
        let names = names(round + 1);
        let profile = snapshot.into_profile(&nodes, &names, String::new(), Vec::new());
        assert_eq!(profile.check(), Ok(()));
        totals.push(total(&profile));
    }
    assert_eq!(totals, [2_010, 2_020, 2_030]);
    assert_eq!(total(&profile(session.stop(clock::monotonic_ns()))), 0);
}

#[test]
fn samples_carry_the_label_sets_of_their_snapshot() {
    let mut session = session();
    let set = |value: &str| LabelSet::empty().with([("request".into(), Some(value.into()))]);
    let (a, b) = (set("a"), set(""));
    let mut seen = Vec::new();
    for order in [[&a, &b], [&b, &a]] {
        for set in order {
            record(&mut session, &[5], Some(set));
        }
        let profile = profile(session.clear(0, 1));
        let value_of = |row: rperf_model::Weight<'_>| {
            let pairs = profile.label_sets.get(row.key.labels);
            profile.strings.get(pairs[0].1).to_string()
        };
        seen.extend(profile.weights.iter().map(value_of));
    }
    assert_eq!(seen, ["a", "", "", "a"]);
}

#[test]
fn a_worker_that_panics_is_told_of_and_nobody_waits_for_it() {
    let config = SessionConfig {
        frequency: 10_000,
        ..config()
    };
    let (done, is_done) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        let mut session = Session::start(config, || panic!("on purpose")).expect("a worker");
        if session.shared_ticks().set_holder(1, NativeId::NONE) {
            session.arm();
        }
        let report = |session: &mut Session| {
            let taken = session.snapshot(0, Vec::new());
            taken.and_then(|(taken, _)| taken.complete())
        };
        while report(&mut session).is_ok() {}
        let stopped = session.stop(0).and_then(|(taken, _)| taken.complete());
        let _ = done.send(stopped.map(drop));
    });
    let outcome = is_done.recv_timeout(std::time::Duration::from_secs(30));
    assert_eq!(outcome, Ok(Err(WorkerEnded)));
}

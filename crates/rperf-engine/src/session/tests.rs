//! Epochs of a session, with stacks that the test makes up.

use super::*;
use crate::LabelSet;
use crate::Mode;
use crate::call_tree::Stack;
use rperf_model::Profile;

/// Records a sample of 10 ns at `stack`.
fn record(session: &mut Session, stack: &[FrameWord], labels: Option<&LabelSet>) {
    let mut accounting = Accounting::new(1, Mode::Wall, 1_000_000, 0, 0);
    accounting.begin_running(0);
    let dues = accounting.sample(10, 10, 0, || 1);
    let position = Position {
        stack: Some(Stack {
            frames: stack,
            lines: &[],
            cut: false,
        }),
        last: &mut LastStack::default(),
        labels,
    };
    session.record(0, &mut accounting, dues, position);
}

const CALLS: VmCalls = VmCalls {
    trigger: || (),
    take_stack: |_, _, _| (),
};

fn session() -> Session {
    let config = SessionConfig {
        mode: Mode::Wall,
        frequency: 1000,
        timer: TimerKind::Sleep,
        aggregate: true,
    };
    Session::start(config, CALLS).expect("a worker")
}

fn record_new_frames(session: &mut Session, next: &mut usize, samples: usize) {
    for _ in 0..samples {
        *next += 1;
        record(session, &[*next, 1], None);
    }
}

fn end_epoch(session: &mut Session) -> usize {
    session.begin_epoch_end();
    let frames = (0..).map_while(|row| session.ending_frame(row)).count();
    // The code is new each time, its name is not.
    let name = |row| ResolvedFrame {
        name: if row == 1 { "main" } else { "template" }.into(),
        path: "app.rb".into(),
        first_line: 1,
    };
    session.end_epoch((0..frames).map(name).collect());
    frames
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
    assert!(!session.is_epoch_over(session.no_end_before - 1));
    assert!(session.no_end_before >= ended);
    assert!(session.is_epoch_over(session.no_end_before));
    end_epoch(&mut session);
    let snapshot = session
        .stop(clock::monotonic_ns())
        .expect("the worker lives");
    let profile = snapshot.into_profile(&[], &[], String::new(), Vec::new());
    let sum = profile.sum(profile.schema.default_column());
    assert_eq!((sum, profile.frames.len()), (6_000, 2));
    assert_eq!(profile.check(), Ok(()));
}

#[test]
fn what_is_cleared_is_in_one_snapshot_only() {
    let mut session = session();
    let sum = |profile: &Profile| -> i64 {
        assert_eq!(profile.check(), Ok(()));
        profile.sum(profile.schema.default_column())
    };
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
        session.count_sampling(5, 50);
        let now = clock::monotonic_ns();
        let snapshot = session.begin_clear(now, 1).expect("the worker lives");
        assert_eq!((snapshot.start_ns, snapshot.end_ns), (start, now));
        start = now;
        assert_eq!(snapshot.counters.sampling_count, 5);
        assert_eq!(snapshot.counters.threads, 1);
        let frames = (0..).map_while(|row| session.ending_frame(row)).count();
        assert_eq!(frames, round + 1);
        let nodes = session.end_clear();
        assert_eq!(session.frames().count(), 0, "nothing is kept alive");
        let name = ResolvedFrame {
            name: "method".into(),
            path: "app.rb".into(),
            first_line: 1,
        };
        let profile = snapshot.into_profile(&nodes, &vec![name; frames], String::new(), Vec::new());
        totals.push(sum(&profile));
    }
    assert_eq!(totals, [2_010, 2_020, 2_030]);
    let rest = session
        .stop(clock::monotonic_ns())
        .expect("the worker lives");
    let rest = rest.into_profile(&[], &[], String::new(), Vec::new());
    assert_eq!(sum(&rest), 0);
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
        let snapshot = session.begin_clear(0, 1).expect("the worker lives");
        let nodes = session.end_clear();
        let profile = snapshot.into_profile(&nodes, &[], String::new(), Vec::new());
        assert_eq!(profile.check(), Ok(()));
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
        mode: Mode::Wall,
        frequency: 10_000,
        timer: TimerKind::Sleep,
        aggregate: true,
    };
    let (done, is_done) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        let calls = VmCalls {
            trigger: || panic!("on purpose"),
            ..CALLS
        };
        let mut session = Session::start(config, calls).expect("a worker");
        if session.shared_ticks().set_holder(1, 0) {
            session.arm();
        }
        while session.snapshot(0).is_ok() {}
        let _ = done.send(session.stop(0).map(drop));
    });
    let outcome = is_done.recv_timeout(std::time::Duration::from_secs(30));
    assert_eq!(outcome, Ok(Err(WorkerEnded)));
}

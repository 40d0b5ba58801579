//! Epochs of a session, with stacks that the test makes up.

use super::*;

/// One stack.
struct Given<'a>(&'a [FrameWord]);

impl StackSource for Given<'_> {
    fn capture(&mut self) -> Option<Stack<'_>> {
        Some(Stack {
            frames: self.0,
            lines: &[],
            cut: false,
        })
    }

    fn new_frame(&mut self, _: FrameWord) {}
}

const VALUES: Values = Values {
    count: 1,
    wall_ns: 10,
    cpu_ns: 1,
};

const CALLS: VmCalls = VmCalls {
    trigger: || (),
    take_stack: |_| (),
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
        let stack = [*next, 1];
        let mut last = LastStack::default();
        let mut recorder = session.recorder(0, &mut last, 0, Given(&stack));
        recorder.record(1, State::Running, VALUES);
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
    let sum: u64 = profile.weights.iter().map(|row| row.values.wall_ns).sum();
    assert_eq!((sum, profile.frames.len()), (6_000, 2));
    assert_eq!(profile.check(), Ok(()));
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

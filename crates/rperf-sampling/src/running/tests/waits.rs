//! Waits whose stack is known from the last one, and what requests have waited for.

use super::*;
use crate::collect::packed_labels::PackedLabels;
use rperf_vm::{RequestNumber, StackDigest};
use std::sync::atomic::AtomicBool;
use std::thread;

/// MAIN waits until something is due, on a stack with this digest. Returns whether the stack was known.
fn wait(session: &RunningSession, vm: &FakeVm, main: &ThreadState, digest: StackDigest) -> bool {
    loop {
        suspended(session, vm, main);
        pass_time();
        if let FollowUp::Record(mut wanted) = session.resumed(vm.gvl(), main) {
            let is_known = session.knows_stack(vm.gvl(), &mut wanted, || Some(digest));
            if is_known {
                drop(session.record(vm.gvl(), wanted, None, vm.labels().as_ref()));
            } else {
                record(session, vm, wanted);
            }
            return is_known;
        }
    }
}

#[test]
fn a_wait_on_the_same_stack_as_the_last_one_needs_no_stack() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    resumed(&session, &vm, main);
    let [here, elsewhere] = [1, 2].map(StackDigest::of);
    assert!(!wait(&session, &vm, main, here));
    for _ in 0..5 {
        assert!(wait(&session, &vm, main, here));
    }
    let (sums, snapshot) = sums(&session, &vm);
    let blocked = sum_of(&sums, State::GvlBlocked);
    assert!(
        blocked.count >= 6 && blocked.times.wall_ns >= 18_000_000,
        "{blocked:?}"
    );
    let rows = sums.iter().filter(|row| row.0 == State::GvlBlocked);
    assert_eq!(rows.count(), 1, "one stack");
    assert_eq!(snapshot.counted.counters.capture.known_waits, 5);

    vm.set_stack(&[(4, 41), (2, 21), (1, 11)]);
    assert!(!wait(&session, &vm, main, elsewhere));
    assert!(wait(&session, &vm, main, elsewhere));
    assert!(
        !wait(&session, &vm, main, here),
        "the last one alone is known"
    );
    let mut state = session.state(vm.gvl()).expect("no borrow is held");
    state.forget_points(vm.gvl());
    drop(state);
    assert!(
        !wait(&session, &vm, main, here),
        "the call tree is another one"
    );
    native::leave();
}

#[test]
fn no_digest_is_asked_for_but_after_a_wait_of_the_calling_thread() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    resumed(&session, &vm, main);
    pass_time();
    session.ticks.tick();
    let learned = session.learn(&vm, vm.gvl(), main);
    let FollowUp::Record(mut wanted) = session.sample(vm.gvl(), main, learned) else {
        panic!("it has run for some ticks");
    };
    assert!(!session.knows_stack(vm.gvl(), &mut wanted, || panic!("it has run")));
    record(&session, &vm, wanted);
    native::leave();
}

#[test]
fn a_thread_that_ticks_can_find_waits_no_more() {
    const HAND_OVERS: u32 = 100_000;
    let (vm, session) = session_with(SessionConfig {
        blames: true,
        ..CONFIG
    });
    let main = thread(&session, MAIN);
    resumed(&session, &vm, main);
    let (ticks, waiters) = (&session.ticks, session.waits.waiters.as_ref());
    let waiters = waiters.expect("blame is measured");
    let is_over = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut found = 0;
            while !is_over.load(Relaxed) {
                let wait = waiters.since(MAIN);
                let has_gvl = ticks.holder().is_some();
                if wait.is_some() && has_gvl && waiters.since(MAIN) == wait {
                    found += 1;
                }
            }
            found
        });
        for _ in 0..HAND_OVERS {
            suspended(&session, &vm, main);
            // SAFETY: MAIN's native thread is this one.
            unsafe { session.ready(MAIN) };
            resumed(&session, &vm, main);
        }
        is_over.store(true, Relaxed);
        looks.join().expect("it doesn't panic")
    });
    assert_eq!(found, 0, "of {HAND_OVERS} turns");
    native::leave();
}

/// OTHER, whose labels are these, waits for the GVL while three ticks find MAIN, which has it. Returns for how
/// long MAIN has it in all, and what OTHER has waited for: in all, and of which label sets.
fn wait_behind_main(config: SessionConfig, labels: Option<LabelSet>) -> (u64, u64, Vec<String>) {
    let (vm, session) = session_with(config);
    let main = thread(&session, MAIN);
    let other = thread(&session, OTHER);
    resumed(&session, &vm, main);
    suspended(&session, &vm, main);
    vm.thread.set(OTHER);
    *vm.labels.borrow_mut() = labels;
    resumed(&session, &vm, other);
    note_labels(&session, &vm, other);
    suspended(&session, &vm, other);
    vm.thread.set(MAIN);
    *vm.labels.borrow_mut() = labelled("main");
    let began = clock::monotonic_ns();
    resumed(&session, &vm, main);
    note_labels(&session, &vm, main);
    tick(&session, &vm);
    // SAFETY: both threads of the VM are this one.
    unsafe { session.ready(OTHER) };
    (0..3).for_each(|_| tick(&session, &vm));
    suspended(&session, &vm, main);
    let held = clock::monotonic_ns() - began;
    vm.thread.set(OTHER);
    *vm.labels.borrow_mut() = None;
    resumed(&session, &vm, other);
    let (_, snapshot) = sums(&session, &vm);
    let sums = snapshot.collected.sums.iter();
    let found: Vec<_> = sums.filter(|(_, it)| it.times.waited_for_ns > 0).collect();
    let sum = found.iter().map(|(_, it)| it.times.waited_for_ns).sum();
    let names = found.iter().map(|(key, values)| {
        assert_eq!(
            (key.state, values.count, values.times.wall_ns),
            (State::Running, 0, 0)
        );
        let number = PackedLabels::of(key.labels).number.0 as usize;
        snapshot.texts.label_sets[number - 1][0].1.to_string()
    });
    native::leave();
    (held, sum, names.collect())
}

#[test]
fn a_request_has_what_it_has_waited_for() {
    let config = SessionConfig {
        blames: true,
        judges: true,
        ..CONFIG
    };
    let labels = labelled("request");
    let request = labels.as_ref().map(|it| it.in_request(RequestNumber(7)));
    let (held, sum, names) = wait_behind_main(config, request.clone());
    assert_eq!(names, ["request"], "one stack");
    assert!(
        // The first tick stands for time before it.
        sum > 6_000_000 && sum <= held,
        "{sum} of {held}"
    );
    assert_eq!(wait_behind_main(config, labels).1, 0, "it is in no request");
    for (blames, judges) in [(true, false), (false, true)] {
        let config = SessionConfig {
            blames,
            judges,
            ..CONFIG
        };
        assert_eq!(wait_behind_main(config, request.clone()).1, 0);
    }
}

#[test]
fn nobody_is_to_blame_for_the_waits_of_a_thread_that_is_left_out() {
    let blames = SessionConfig {
        blames: true,
        ..CONFIG
    };
    for is_left_out in [false, true] {
        let (vm, session) = session_with(blames);
        let main = thread(&session, MAIN);
        let other = thread(&session, OTHER);
        vm.thread.set(OTHER);
        resumed(&session, &vm, other);
        if is_left_out {
            session.leave_out_waits(vm.gvl(), OTHER);
        }
        suspended(&session, &vm, other);
        vm.thread.set(MAIN);
        resumed(&session, &vm, main);
        // SAFETY: both threads of the VM are this one.
        unsafe { session.ready(OTHER) };
        (0..3).for_each(|_| tick(&session, &vm));
        suspended(&session, &vm, main);
        vm.thread.set(OTHER);
        resumed(&session, &vm, other);
        let (sums, snapshot) = sums(&session, &vm);
        let blame: u64 = sums.iter().map(|(_, values)| values.times.blame_ns).sum();
        assert_eq!(blame == 0, is_left_out, "{blame} ns");
        assert_eq!(snapshot.counted.counters.unknown_holder_ns, 0);
        assert!(
            sum_of(&sums, State::GvlWait).times.wall_ns > 6_000_000,
            "it waits all the same"
        );
        // SAFETY: OTHER's native thread is this one.
        unsafe { session.exited(OTHER, || Some(other)) };
        assert!(
            !session.waits.is_left_out(OTHER),
            "its address can be another's"
        );
        native::leave();
    }
}

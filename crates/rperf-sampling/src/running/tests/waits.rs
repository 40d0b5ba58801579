//! Waits whose stack is known from the last one.

use super::*;
use rperf_vm::StackDigest;

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
        blocked.count >= 6 && blocked.wall_ns >= 18_000_000,
        "{blocked:?}"
    );
    let rows = sums.iter().filter(|row| row.0 == State::GvlBlocked);
    assert_eq!(rows.count(), 1, "one stack");
    assert_eq!(snapshot.counters.capture.known_waits, 5);

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

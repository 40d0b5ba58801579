//! The end of a session's time.

use super::*;

#[test]
fn after_its_end_a_session_is_brought_up_to_that_however_late() {
    let (vm, session) = session();
    let (main, other, ended) = (
        thread(&session, MAIN),
        thread(&session, OTHER),
        thread(&session, VmThread(120)),
    );
    let began = clock::monotonic_ns();
    for it in [main, other, ended] {
        begin_thread(&session, &vm, it, began);
    }
    pass_time();
    session.end();
    let current = vm.thread.get();
    for wanted in session.end_time(vm.gvl(), current, |_| false) {
        record(&session, &vm, wanted);
    }
    assert!(session.has_time_ended());
    pass_time();
    // It has ended since, and no event has told of it.
    let is_ended = |state: &ThreadState| state.thread == VmThread(120);
    let end = flush(&session, &vm, is_ended);
    pass_time();
    assert_eq!(session.end_time(vm.gvl(), current, |_| false).count(), 0);
    let (sums, snapshot) = sums(&session, &vm);
    assert_eq!(snapshot.end_ns, end);
    let wall = |state| sum_of(&sums, state).wall_ns;
    assert_eq!(wall(State::Running), end - began);
    assert_eq!(wall(State::GvlBlocked), 2 * (end - began));
}

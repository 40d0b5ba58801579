//! What the events tell of idle times, which say where the timer is stopped.

use super::*;

const MOMENT: usize = 8;
const WAIT: usize = 16;

#[test]
fn the_timer_is_stopped_where_nobody_takes_the_gvl_for_a_while() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    session.ticks.timer().allow_stops();
    session.ticks.timer().note_start(CONFIG.interval());
    let give_up_at = |place: usize| {
        resumed(&session, &vm, main);
        let which = complete(&session, &vm, session.suspended(vm.gvl(), main, || place));
        assert_eq!(which, None);
        session.ticks.ask_for_stop(clock::monotonic_ns(), || place)
    };
    give_up_at(WAIT);
    // A tick finds nobody: no callback is due for a while.
    session.ticks.tick();
    let (mut at_moment, mut at_wait) = (0, 0);
    for _ in 0..10 {
        for _ in 0..3 {
            at_moment += u32::from(give_up_at(MOMENT));
        }
        at_wait += u32::from(give_up_at(WAIT));
        pass_time();
    }
    // Now and then the worker has the timer just then, and the first one tells nothing.
    assert!(at_wait >= 7, "{at_wait} of 10");
    assert!(at_moment <= 15, "{at_moment} of 30");
    native::leave();
}

#[test]
#[cfg(target_os = "linux")]
fn the_hook_stops_a_timer_that_sends_signals() {
    use crate::{default_signal, tick_capture::signal::HANDLERS};
    let _one_at_a_time = HANDLERS.lock();
    let (vm, session) = session_with(SessionConfig {
        timer: TimerKind::Signal(default_signal()),
        frequency: 2,
        ..CONFIG
    });
    let main = thread(&session, MAIN);
    let give_up_at = |place: usize| {
        resumed(&session, &vm, main);
        assert!(session.ticks.armed());
        complete(&session, &vm, session.suspended(vm.gvl(), main, || place));
        session.ticks.armed()
    };
    // A tick finds nobody: no callback is due for a while.
    give_up_at(WAIT);
    session.ticks.tick();
    for place in 0..5 {
        assert!(
            !give_up_at(WAIT + 8 * place),
            "nothing is known of the place"
        );
    }
    assert!(give_up_at(WAIT), "the next thread came at once");
    let (mut engine, _) = session.into_parts();
    engine.abandon();
    native::leave();
}

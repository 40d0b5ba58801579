//! What samples lack in a VM that isn't of the form that is expected.

use super::*;
use crate::counters::Capture;
use crate::tick_capture::signal::{HANDLERS, use_signal_stack};
use crate::{Missing, StartError, StartOptions, default_signal};
use rperf_vm::fake::LAYOUT;
use rperf_vm::{FrameLayout, Unknown};

/// What a snapshot of a session in this VM says.
fn missing(vm: &FakeVm, lines: bool, capture: Option<Capture>) -> Result<Missing, StartError> {
    let _one_at_a_time = HANDLERS.lock();
    use_signal_stack(64 << 10);
    let options = StartOptions {
        config: SessionConfig {
            timer: TimerKind::Signal(default_signal()),
            ..CONFIG
        },
        any_timer: true,
        lines,
        capture,
        shares_native_threads: false,
        on_ended_threads: None,
    };
    let session = RunningSession::start::<FakeVm>(vm, vm.gvl(), || (), options)?;
    let (_, snapshot) = sums(&session, vm);
    let (mut engine, _) = session.into_parts();
    engine.abandon();
    Ok(snapshot.missing)
}

fn vm() -> FakeVm {
    FakeVm::new(MAIN, &[(3, 31), (2, 21), (1, 11)])
}

#[test]
fn lines_of_compiled_code_are_missing_for_a_reason() {
    static MOVED: FrameLayout = FrameLayout {
        frame_in_context: LAYOUT.frame_in_context + 8,
        ..LAYOUT
    };
    let words = [0_usize; 8];
    let at_tick = Some(Capture::Tick);
    for (layout, reason) in [
        (Err(Unknown::Version), Unknown::Version),
        (Ok(&MOVED), Unknown::Form),
    ] {
        let vm = vm();
        vm.layout.set(layout);
        vm.context.set(words.as_ptr().addr());
        let found = missing(&vm, true, at_tick).expect("it begins");
        let expected = Missing {
            tick_stacks: false,
            compiled_lines: Some(reason),
        };
        assert_eq!(found, expected);
        let without = missing(&vm, false, at_tick).expect("it begins");
        assert_eq!(without, Missing::default(), "nobody wants lines");
        let of_safepoints = missing(&vm, true, Some(Capture::Safepoint)).expect("it begins");
        assert_eq!(of_safepoints, Missing::default(), "the VM tells them");
    }
}

#[test]
fn without_stacks_at_ticks_there_are_those_at_safepoints() {
    let vm = vm();
    // To the made-up VM this is no frame.
    vm.set_stack(&[(3, 31), (0, 21), (1, 11)]);
    let expected = Missing {
        tick_stacks: true,
        compiled_lines: None,
    };
    assert_eq!(missing(&vm, true, None).expect("it begins"), expected);
    let refused = missing(&vm, true, Some(Capture::Tick));
    assert!(matches!(refused, Err(StartError::TickCapture(_))));
}

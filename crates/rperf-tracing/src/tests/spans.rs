//! Time lines of a made-up VM: each call is there once, and calls of a fiber nest.

use super::made_up_vm::{Act, Machine};
use super::{acts, level, profile_of, start};
use crate::{TraceClock, Tracer};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rperf_model::{Span, TimeLine};
use std::collections::BTreeMap;

/// What calls of at least so many ns there were in `after`.
fn time_line(before: &[Act], after: &[Act], least_ns: u64) -> (TimeLine, Machine) {
    let mut machine = Machine::new(level("ruby"));
    for act in before {
        machine.act(*act);
    }
    let mut tracer = Tracer::new(level("ruby"), TraceClock::Monotonic, start());
    tracer.keep_spans(least_ns, 1.0);
    machine.begin(tracer);
    for act in after {
        machine.act(*act);
    }
    let mut lines = profile_of(&mut machine).time_lines;
    assert_eq!(lines.len(), 1);
    (lines.remove(0), machine)
}

/// By fiber, whether each call lies within the one around it.
fn nest(spans: &[Span]) -> bool {
    let mut open: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    spans.iter().all(|span| {
        let ends = open.entry((span.thread, span.fiber)).or_default();
        ends.retain(|end| *end > span.start_ns);
        let end = span.start_ns + span.duration_ns;
        let is_within = ends.last().is_none_or(|around| end <= *around);
        ends.push(end);
        is_within
    })
}

#[test]
fn calls_have_their_begins_and_ends() {
    let after = [
        Act::Method(1),
        Act::Method(2),
        Act::Return,
        Act::Block(3),
        Act::Return,
        Act::Return,
        Act::Method(4),
        Act::Hidden,
    ];
    let (line, machine) = time_line(&[], &after, 1);
    let spans: Vec<_> = line
        .spans
        .iter()
        .map(|span| {
            let name = line.names[span.name as usize].as_str();
            (name, span.start_ns, span.duration_ns, span.is_open)
        })
        .collect();
    // 8 ns from each act to the next; the words are those of the made-up frames.
    let end = machine.now;
    assert_eq!(
        spans,
        [
            ("128", 8, 40, false),
            ("192", 16, 8, false),
            ("257", 32, 8, false),
            ("320", 56, end - 56, true),
        ]
    );
    assert_eq!((line.least_ns, line.left_out), (1, 0));
}

#[test]
fn shorter_calls_are_not_there() {
    let after = [
        Act::Method(1),
        Act::Method(2),
        Act::Return,
        Act::Return,
        Act::Method(1),
        Act::Return,
    ];
    let (line, _) = time_line(&[], &after, 20);
    assert_eq!(line.spans.len(), 1);
    assert_eq!((line.spans[0].duration_ns, line.left_out), (24, 0));
}

#[test]
fn a_switch_of_fibers_ends_no_call_and_each_fiber_has_its_track() {
    let after = [
        Act::Method(1),
        Act::SwitchFiber(1),
        // A fiber that is switched to at depth 1 is a new one.
        Act::Method(2),
        Act::Method(4),
        Act::SwitchFiber(0),
        Act::Method(3),
        Act::Return,
        Act::Return,
        Act::SwitchFiber(1),
        Act::Return,
        Act::Return,
    ];
    let (line, _) = time_line(&[Act::Method(0)], &after, 1);
    let tracks: Vec<_> = line
        .spans
        .iter()
        .map(|span| {
            (
                line.names[span.name as usize].as_str(),
                span.fiber == 0,
                span.is_open,
            )
        })
        .collect();
    assert_eq!(
        tracks,
        [
            ("128", true, false),
            ("192", false, false),
            ("320", false, false),
            ("256", true, false)
        ]
    );
    assert!(nest(&line.spans));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        rng_seed: RngSeed::Fixed(15),
        ..ProptestConfig::default()
    })]

    #[test]
    fn calls_nest_and_none_is_there_twice(before in acts(), after in acts()) {
        let (line, machine) = time_line(&before, &after, 0);
        prop_assert!(nest(&line.spans), "{:?}", line.spans);
        let calls: i64 = machine.calls.values().sum();
        let is_lossy = |act: &Act| matches!(act, Act::TailCall(_) | Act::Overflow(_));
        match after.iter().any(is_lossy) {
            // A call that is lost can look like the next one.
            true => prop_assert!(line.spans.len() as i64 <= calls),
            false => prop_assert_eq!(line.spans.len() as i64, calls),
        }
        for span in &line.spans {
            prop_assert!(span.start_ns + span.duration_ns <= machine.now);
        }
    }
}

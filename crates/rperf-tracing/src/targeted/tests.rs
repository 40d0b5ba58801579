//! Chosen methods of a made-up VM.

use super::*;
use rperf_model::{Column, Profile, Schema, ValueType};
use rperf_vm::ResolvedFrame;
use std::collections::BTreeMap;

/// Words of frames from here on are of methods that blocks define.
const BARE: FrameWord = 100;

/// The VM's stack as an event shows it: its depth, the topmost frame, and below it all that there
/// may be.
struct At(u32, FrameWord);

/// The VM's stack as an event shows it: its depth, the topmost frame, and the frame that is in
/// each place below it.
struct Over(u32, FrameWord, FrameWord);

impl TraceVm for Over {
    fn depth(&self) -> u32 {
        self.0
    }

    fn frames(&self, frames: &mut [FrameWord]) -> usize {
        frames.fill(self.2);
        frames[0] = self.1;
        frames.len()
    }

    fn mark_blocks(&self, _frames: &mut [FrameWord]) {}

    fn is_c_method(&self, _: FrameWord) -> bool {
        false
    }

    fn is_called(&self, _: FrameWord) -> bool {
        true
    }

    fn is_named_block(&self, _frame: FrameWord) -> bool {
        false
    }

    fn is_bare_code(&self, frame: FrameWord) -> bool {
        frame > 50
    }

    fn method_of_code(&self) -> Option<(usize, FrameWord)> {
        Some((self.1 % 10, 7))
    }
}

impl TraceVm for At {
    fn depth(&self) -> u32 {
        self.0
    }

    fn frames(&self, frames: &mut [FrameWord]) -> usize {
        for (frame, word) in frames.iter_mut().zip([self.1, 1, 2, 3, BARE]) {
            *frame = word;
        }
        frames.len().min(5)
    }

    fn mark_blocks(&self, _frames: &mut [FrameWord]) {}

    fn is_c_method(&self, _: FrameWord) -> bool {
        false
    }

    fn is_called(&self, _: FrameWord) -> bool {
        true
    }

    fn is_named_block(&self, _frame: FrameWord) -> bool {
        false
    }

    fn is_bare_code(&self, frame: FrameWord) -> bool {
        frame >= BARE
    }
}

fn reading(ns: u64) -> ClockReading {
    ClockReading {
        ticks: ns,
        monotonic_ns: ns,
        realtime_ns: ns,
    }
}

fn tracer() -> TargetedTracer {
    TargetedTracer::new(TraceClock::Monotonic, reading(0))
}

const MAIN: usize = 8;
const OTHER: usize = 16;

/// The profile of the calls alone up to `end`.
fn profile(tracer: &mut TargetedTracer, end: u64) -> Profile {
    let (snapshot, names) = taken(tracer, end);
    let profile = snapshot.into_profile(&names, &[], "app.rb".into(), Vec::new());
    assert_eq!(profile.check(), Ok(()));
    assert_eq!(profile.meta.program, "app.rb");
    profile
}

/// What was counted up to `end`, and the names of its frames.
fn taken(tracer: &mut TargetedTracer, end: u64) -> (TargetedSnapshot, Vec<ResolvedFrame>) {
    let frames = (0..tracer.frame_count()).filter_map(|row| tracer.frame(row));
    let names: Vec<_> = frames
        .map(|(frame, _)| ResolvedFrame {
            name: format!("m{}", frame.word + frame.method * 100),
            path: "app.rb".into(),
            first_line: 1,
        })
        .collect();
    (tracer.snapshot(reading(end)), names)
}

/// Calls and time by path, whatever the labels.
fn rows(profile: &Profile) -> BTreeMap<String, (i64, i64)> {
    let mut rows = BTreeMap::<_, (i64, i64)>::new();
    for weight in profile.weights.iter() {
        let mut path = Vec::new();
        let mut node = weight.key.node;
        while node != rperf_model::NodeId::ROOT {
            let it = profile.tree.get(node).expect("a node");
            let frame = profile.frames.get(it.frame).expect("a frame");
            path.insert(0, profile.strings.get(frame.name).to_string());
            node = it.parent;
        }
        let row = rows.entry(path.join(">")).or_default();
        let width = weight.values.len();
        row.0 += weight.values[width - 2];
        row.1 += weight.values[width - 1];
    }
    rows
}

fn alone(tracer: &mut TargetedTracer, end: u64) -> BTreeMap<String, (i64, i64)> {
    rows(&profile(tracer, end))
}

fn expected<const N: usize>(rows: [(&str, (i64, i64)); N]) -> BTreeMap<String, (i64, i64)> {
    rows.map(|(path, row)| (path.to_string(), row)).into()
}

#[test]
fn calls_have_their_time_less_that_of_chosen_ones_below() {
    let mut tracer = tracer();
    tracer.enter(&At(5, 1), MAIN, None, 100);
    for began in [200, 300] {
        tracer.enter(&At(9, 2), MAIN, None, began);
        tracer.leave(&At(9, 2), MAIN, began + 30);
    }
    tracer.enter(&At(7, 1), MAIN, None, 400);
    tracer.leave(&At(7, 1), MAIN, 500);
    tracer.leave(&At(5, 1), MAIN, 1_100);
    let rows = expected([("m1", (1, 840)), ("m1>m1", (1, 100)), ("m1>m2", (2, 60))]);
    assert_eq!(alone(&mut tracer, 2_000), rows);
    assert_eq!(alone(&mut tracer, 3_000), rows, "nothing is open");
}

#[test]
fn calls_without_a_beginning_or_an_end_spoil_nothing() {
    let mut tracer = tracer();
    tracer.leave(&At(4, 1), MAIN, 50);
    tracer.enter(&At(5, 1), MAIN, None, 100);
    tracer.enter(&At(9, 2), MAIN, None, 200);
    tracer.enter(&At(12, 2), MAIN, None, 300);
    // A stack overflow took both away.
    tracer.enter(&At(7, 3), MAIN, None, 400);
    tracer.leave(&At(7, 3), MAIN, 500);
    tracer.leave(&At(5, 2), MAIN, 550);
    tracer.leave(&At(5, 1), MAIN, 600);
    let found = alone(&mut tracer, 700);
    assert_eq!(found["m1>m3"], (1, 100));
    assert_eq!(found["m1"].0, 1);
    assert_eq!(found.values().map(|row| row.1).sum::<i64>(), 500);
    let profile = profile(&mut tracer, 700);
    let lines = profile.meta.lines().join("\n");
    assert!(lines.contains("2 calls have no duration"), "{lines}");
    assert!(lines.contains("m1: 1 call has ended"), "{lines}");
}

#[test]
fn the_frame_of_a_method_that_a_block_defines_may_be_gone_at_its_end() {
    for gone in [false, true] {
        let mut tracer = tracer();
        tracer.enter(&At(4, 1), MAIN, None, 0);
        tracer.enter(&At(5, BARE), MAIN, None, 100);
        let end = if gone { At(4, 1) } else { At(5, BARE) };
        tracer.leave(&end, MAIN, 130);
        tracer.leave(&At(4, 1), MAIN, 200);
        let rows = expected([("m1", (1, 170)), ("m1>m100", (1, 30))]);
        assert_eq!(alone(&mut tracer, 300), rows);
    }
}

#[test]
fn methods_that_share_a_block_are_told_apart_and_keep_its_code() {
    let mut tracer = tracer();
    for (word, depth) in [(51, 5), (61, 5), (52, 5)] {
        tracer.enter(&Over(depth, word, 0), MAIN, None, 0);
        tracer.leave(&Over(depth, word, 0), MAIN, 10);
    }
    let rows = expected([("m107", (2, 20)), ("m207", (1, 10))]);
    assert_eq!(alone(&mut tracer, 20), rows);
    let mut new = Vec::new();
    tracer.each_new_root(|word| new.push(word));
    assert_eq!(new, [7, 7, 51, 61, 52]);
    assert_eq!(tracer.frame(0).map(|it| it.1), Some(61), "the last one");
    tracer.each_new_root(|word| panic!("{word} again"));
    assert!(tracer.roots().count() == 4 && tracer.memory() > 0);
}

#[test]
fn a_method_is_one_whatever_words_its_frames_have() {
    let mut tracer = tracer();
    for word in [11, 21, 31] {
        tracer.enter(&Over(5, word, 0), MAIN, None, 0);
        tracer.leave(&Over(5, word, 0), MAIN, 10);
    }
    assert_eq!(alone(&mut tracer, 20), expected([("m107", (3, 30))]));
    assert_eq!((tracer.frame_count(), tracer.roots().count()), (1, 2));
}

#[test]
fn calls_in_a_slow_one_keep_their_labels() {
    let labels = LabelSet::empty().with([("page".into(), Some("a".into()))]);
    let mut tracer = tracer();
    tracer.enter(&At(5, 1), MAIN, None, 0);
    tracer.enter(&At(7, 2), MAIN, Some(&labels), 10);
    tracer.leave(&At(7, 2), MAIN, 20);
    tracer.leave(&At(5, 1), MAIN, 30);
    let profile = profile(&mut tracer, 40);
    let keys = |set: &[_]| -> Vec<String> {
        let keys = set.iter().map(|&(key, _)| profile.strings.get(key));
        keys.map(|it| it.to_string()).collect()
    };
    let mut found: Vec<_> = profile
        .weights
        .iter()
        .filter(|it| it.values[0] > 0)
        .map(|it| keys(profile.label_sets.get(it.key.labels)))
        .collect();
    found.sort();
    assert_eq!(found, [vec!["%call"], vec!["page", "%call"]]);
}

#[test]
fn a_fiber_that_is_known_from_the_start_keeps_its_calls() {
    let mut tracer = tracer();
    let (first, other) = (1_000, 2_000);
    tracer.name_fiber(MAIN, first);
    tracer.enter(&At(5, 1), MAIN, None, 0);
    tracer.switched(&At(3, 0), MAIN, 3_000, 10);
    // It was there before, and is as deep.
    tracer.switched(&At(5, 1), MAIN, other, 20);
    tracer.leave(&At(5, 1), MAIN, 30);
    tracer.switched(&At(5, 1), MAIN, first, 100);
    tracer.leave(&At(5, 1), MAIN, 140);
    assert_eq!(alone(&mut tracer, 200), expected([("m1", (1, 50))]));
}

#[test]
fn calls_that_the_vm_shows_no_more_have_gone() {
    let mut tracer = tracer();
    tracer.enter(&At(5, 1), MAIN, None, 0);
    tracer.enter(&At(7, 2), MAIN, None, 10);
    // Deeper than these, in a clause that rescues a stack overflow.
    tracer.enter(&Over(9, 3, 1), MAIN, None, 20);
    tracer.leave(&Over(9, 3, 1), MAIN, 30);
    let found = alone(&mut tracer, 40);
    assert_eq!(found["m1>m307"], (1, 10));
    tracer.enter(&Over(9, 3, 4), MAIN, None, 50);
    let found = alone(&mut tracer, 60);
    assert_eq!(found["m307"], (1, 10));
}

#[test]
fn fibers_and_threads_have_stacks_of_their_own() {
    let mut tracer = tracer();
    tracer.enter(&At(5, 1), MAIN, None, 100);
    tracer.enter(&At(3, 2), OTHER, None, 150);
    let (fiber, first) = (1_000, 2_000);
    tracer.switched(&At(1, 0), MAIN, fiber, 200);
    tracer.enter(&At(3, 2), MAIN, None, 250);
    tracer.switched(&At(5, 1), MAIN, first, 300);
    tracer.enter(&At(6, 3), MAIN, None, 400);
    tracer.leave(&At(6, 3), MAIN, 450);
    tracer.leave(&At(3, 2), OTHER, 460);
    tracer.switched(&At(3, 2), MAIN, fiber, 500);
    tracer.leave(&At(3, 2), MAIN, 550);
    tracer.switched(&At(5, 1), MAIN, first, 600);
    tracer.leave(&At(5, 1), MAIN, 700);
    let rows = expected([("m1", (1, 350)), ("m1>m3", (1, 50)), ("m2", (2, 410))]);
    assert_eq!(alone(&mut tracer, 800), rows);
}

#[test]
fn a_new_fiber_at_the_place_of_an_old_one_is_new() {
    let mut tracer = tracer();
    let fiber = 1_000;
    tracer.switched(&At(1, 0), MAIN, fiber, 0);
    tracer.enter(&At(3, 1), MAIN, None, 10);
    tracer.switched(&At(5, 0), MAIN, 2_000, 20);
    tracer.switched(&At(1, 0), MAIN, fiber, 30);
    tracer.enter(&At(6, 2), MAIN, None, 40);
    tracer.leave(&At(6, 2), MAIN, 50);
    assert_eq!(
        alone(&mut tracer, 60),
        expected([("m1", (1, 10)), ("m2", (1, 10))])
    );
}

#[test]
fn a_cleared_trace_goes_on_with_the_calls_that_are_open() {
    let labels = LabelSet::empty().with([("page".into(), Some("a".into()))]);
    let mut tracer = tracer();
    tracer.enter(&At(5, 1), MAIN, Some(&labels), 0);
    tracer.enter(&At(7, 2), MAIN, Some(&labels), 100);
    assert_eq!(
        alone(&mut tracer, 200),
        expected([("m1", (1, 100)), ("m1>m2", (1, 100))])
    );
    tracer.clear(reading(200));
    tracer.leave(&At(7, 2), MAIN, 250);
    tracer.leave(&At(5, 1), MAIN, 300);
    let profile = profile(&mut tracer, 400);
    assert_eq!(
        rows(&profile),
        expected([("m1", (0, 50)), ("m1>m2", (0, 50))])
    );
    assert_eq!(profile.label_sets.len(), 2, "their label, and no slow call");
}

#[test]
fn the_slowest_calls_are_apart_with_all_below_them() {
    let labels = LabelSet::empty().with([("page".into(), Some("a".into()))]);
    let mut tracer = tracer();
    let mut now = 0;
    for turn in 1..=20 {
        tracer.enter(&At(5, 1), MAIN, Some(&labels), now);
        tracer.enter(&At(7, 2), MAIN, Some(&labels), now + 10);
        tracer.leave(&At(7, 2), MAIN, now + 10 + turn * 100);
        tracer.leave(&At(5, 1), MAIN, now + 20 + turn * 100);
        now += 10_000;
    }
    let types = vec![
        ValueType::new("samples", "count"),
        ValueType::new("cpu", "nanoseconds"),
    ];
    let sampled = Profile::new(Schema::new(types, Column(1)).expect("it has two"));
    let (snapshot, names) = taken(&mut tracer, now);
    let profile = snapshot.add_to(sampled, &names, &[]);
    assert_eq!(profile.check(), Ok(()));
    assert_eq!(
        rows(&profile),
        expected([("m1", (20, 400)), ("m1>m2", (20, 21_000))])
    );
    let text = |id| profile.strings.get(id);
    let sets = profile.label_sets.iter();
    let slow: Vec<_> = sets
        .filter_map(|set| set.iter().find(|(key, _)| text(*key) == "%call"))
        .map(|(_, value)| text(*value).to_string())
        .collect();
    assert_eq!(slow.len(), sums::SLOWEST);
    assert_eq!(slow[0], "m1 2.02 µs at 1970-01-01T00:00:00.000Z");
    assert_eq!(profile.schema.len(), 4);
    assert_eq!(profile.schema.default_type().name, "cpu");
}

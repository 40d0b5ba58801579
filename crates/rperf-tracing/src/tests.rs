//! Tracing of a made-up VM: whatever it does, our stack is its stack at each call, the counts are
//! its counts, and the times of a thread add up to its life.

mod labels;
mod made_up_vm;
mod spans;

use crate::{Calibration, ClockReading, Exclusion, TraceClock, TraceLevel, Tracer};
use made_up_vm::{Act, Machine};
use proptest::prelude::*;
use rperf_model::{NodeId, Profile, State};
use rperf_vm::{GcMoment, ResolvedFrame};
use std::cell::Cell;
use std::collections::BTreeMap;

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => (0usize..6).prop_map(Act::Method),
        6 => (0usize..6).prop_map(Act::Block),
        3 => (0usize..4).prop_map(Act::BlockMethod),
        3 => (0usize..4).prop_map(Act::DefiningBlock),
        6 => (0usize..4).prop_map(Act::C),
        3 => (0usize..4).prop_map(Act::Body),
        2 => Just(Act::Hidden),
        24 => Just(Act::Return),
        2 => (0usize..4).prop_map(Act::TailCall),
        2 => Just(Act::Clause),
        2 => (1usize..6).prop_map(Act::Overflow),
        2 => Just(Act::Retry),
        2 => (1usize..6).prop_map(Act::Unwind),
        2 => (0usize..4).prop_map(Act::SwitchFiber),
        2 => Just(Act::EndFiber),
        3 => (0usize..4).prop_map(Act::SwitchThread),
        2 => (0usize..4).prop_map(Act::Ready),
        2 => (0u64..9, 0u64..9).prop_map(|(marking, sweeping)| Act::Collect(marking, sweeping)),
        1 => Just(Act::Pause),
        3 => Just(Act::Resume),
        1 => Just(Act::Flush),
    ];
    prop::collection::vec(act, 0..300)
}

fn level(name: &str) -> TraceLevel {
    TraceLevel::from_name(name).expect("a level")
}

fn start() -> ClockReading {
    ClockReading::default()
}

/// A machine that has done `before` untraced, and `after` traced.
fn traced(level_name: &str, before: &[Act], after: &[Act]) -> Machine {
    traced_to(level_name, u32::MAX, before, after)
}

/// A machine that has done `before` untraced, and `after` traced, with so many levels in the tree.
fn traced_to(level_name: &str, levels: u32, before: &[Act], after: &[Act]) -> Machine {
    traced_in(Machine::new(level(level_name)), levels, before, after)
}

/// What [`traced_to`] returns, made of this `machine`, which has done nothing yet.
fn traced_in(mut machine: Machine, levels: u32, before: &[Act], after: &[Act]) -> Machine {
    for act in before {
        machine.act(*act);
    }
    let mut tracer = Tracer::new(machine.level, TraceClock::Monotonic, start());
    tracer.limit_depth(levels);
    machine.begin(tracer);
    for act in after {
        machine.act(*act);
    }
    machine
}

/// The calls of a profile by path; those of blocks are with those of methods.
fn calls_by_path(profile: &Profile) -> BTreeMap<Vec<usize>, i64> {
    by_path(profile, &["calls", "block_calls"])
}

fn by_path(profile: &Profile, columns: &[&str]) -> BTreeMap<Vec<usize>, i64> {
    let mut sums = BTreeMap::new();
    let columns = columns
        .iter()
        .map(|name| profile.schema.find(name).expect(name));
    let columns: Vec<_> = columns.collect();
    for weight in profile.weights.iter() {
        let number: i64 = columns.iter().map(|column| weight.value(*column)).sum();
        let mut path: Vec<usize> = profile
            .tree
            .stack(weight.key.node)
            .map(|node| {
                let frame = profile.frames.get(node.frame).expect("a frame");
                profile.strings.get(frame.name).parse().expect("a word")
            })
            .collect();
        path.reverse();
        if number > 0 {
            *sums.entry(path).or_default() += number;
        }
    }
    sums
}

/// Sums by path, at other paths.
fn moved(
    sums: &BTreeMap<Vec<usize>, i64>,
    place: impl Fn(&[usize]) -> Vec<usize>,
) -> BTreeMap<Vec<usize>, i64> {
    let mut moved = BTreeMap::new();
    for (path, sum) in sums {
        *moved.entry(place(path)).or_default() += sum;
    }
    moved
}

fn profile_of(machine: &mut Machine) -> Profile {
    profile_without(machine, |_| false)
}

/// The profile without the frames that have such words.
fn profile_without(machine: &mut Machine, is_excluded: impl Fn(usize) -> bool) -> Profile {
    let end = ClockReading {
        ticks: machine.now,
        monotonic_ns: machine.now,
        realtime_ns: 0,
    };
    machine.flush();
    let tracer = machine.tracer.as_ref().expect("it is traced");
    let name = |frame: &super::TracedFrame| ResolvedFrame {
        name: frame.word.to_string(),
        path: "made_up.rb".into(),
        first_line: 0,
    };
    let names: Vec<_> = tracer.frames().iter().map(name).collect();
    let excluded = tracer
        .frames()
        .iter()
        .map(|frame| match is_excluded(frame.word) {
            true => Exclusion::Asked,
            false => Exclusion::None,
        });
    let excluded: Vec<_> = excluded.collect();
    let profile = tracer.snapshot(end).into_profile(
        &names,
        &excluded,
        &[],
        &Calibration::default(),
        String::new(),
        Vec::new(),
    );
    profile.check().expect("it hangs together");
    profile
}

proptest! {
    #[test]
    fn our_stack_is_the_vms_and_counts_and_times_are_its_own(
        before in acts(), after in acts(), c_methods in any::<bool>()
    ) {
        let level_name = if c_methods { "all" } else { "ruby" };
        let mut machine = traced(level_name, &before, &after);
        prop_assert_eq!(&machine.unequal, &[], "stacks at calls");
        let profile = profile_of(&mut machine);
        prop_assert_eq!(calls_by_path(&profile), machine.calls.clone());
        let wall = profile.schema.find("wall").expect("a column");
        for (thread, begun) in machine.begun.iter().enumerate() {
            let rows = profile.weights.iter().filter(|it| it.key.thread == thread as u32 + 1);
            let sum: i64 = rows.map(|weight| weight.value(wall)).sum();
            prop_assert_eq!(sum, (machine.counted() - begun) as i64, "the life of thread {}", thread);
        }
        let mut states: BTreeMap<State, u64> = BTreeMap::new();
        for weight in profile.weights.iter().filter(|it| it.key.state != State::Running) {
            *states.entry(weight.key.state).or_default() += weight.value(wall) as u64;
        }
        prop_assert_eq!(states, machine.states_so_far());
    }

    #[test]
    fn times_of_a_thread_add_up_where_events_have_an_older_time_than_profiles(
        before in acts(), after in acts(), note_every in 2u64..60
    ) {
        let mut machine = Machine::new(level("ruby"));
        machine.note_every = note_every;
        let mut machine = traced_in(machine, u32::MAX, &before, &after);
        let profile = profile_of(&mut machine);
        let wall = profile.schema.find("wall").expect("a column");
        for (thread, begun) in machine.begun.iter().enumerate() {
            let rows = profile.weights.iter().filter(|it| it.key.thread == thread as u32 + 1);
            let sum = rows.map(|weight| weight.value(wall)).sum::<i64>() as u64;
            let life = machine.counted() - begun;
            // The begin of a new one is known by a note.
            let most = if *begun == 0 { life } else { life + note_every };
            prop_assert!((life..=most).contains(&sum), "{sum} of thread {thread}, which had {life}");
        }
    }

    #[test]
    fn what_excluded_frames_had_is_their_callers(
        before in acts(), after in acts(), excluded in 0usize..4
    ) {
        let is_excluded = |word: usize| word / 64 % 4 == excluded;
        let mut machine = traced("all", &before, &after);
        let whole = profile_of(&mut machine);
        let shown = profile_without(&mut machine, is_excluded);
        let mut calls = calls_by_path(&whole);
        calls.retain(|path, _| !path.last().is_some_and(|word| is_excluded(*word)));
        let without = |path: &[usize]| path.iter().copied().filter(|it| !is_excluded(*it)).collect();
        prop_assert_eq!(calls_by_path(&shown), moved(&calls, without));
        let wall = by_path(&whole, &["wall"]);
        prop_assert_eq!(by_path(&shown, &["wall"]), moved(&wall, without));
    }

    #[test]
    fn what_is_too_deep_has_its_time_in_the_last_frame(
        before in acts(), after in acts(), levels in 1usize..9
    ) {
        let whole = profile_of(&mut traced("all", &before, &after));
        let shown = profile_of(&mut traced_to("all", levels as u32, &before, &after));
        let cut = |path: &[usize]| match path.len() > levels {
            true => [&path[..levels], &path[path.len() - 1..]].concat(),
            false => path.to_vec(),
        };
        prop_assert_eq!(calls_by_path(&shown), moved(&calls_by_path(&whole), cut));
        let cut = |path: &[usize]| path[..path.len().min(levels)].to_vec();
        prop_assert_eq!(by_path(&shown, &["wall"]), moved(&by_path(&whole, &["wall"]), cut));
    }

    #[test]
    fn counts_without_returns_are_the_same(before in acts(), after in acts(), c_methods in any::<bool>()) {
        let level_name = if c_methods { "count-all" } else { "count" };
        let mut machine = traced(level_name, &before, &after);
        let profile = profile_of(&mut machine);
        let total = |calls: &BTreeMap<Vec<usize>, i64>| calls.values().sum::<i64>();
        prop_assert_eq!(total(&calls_by_path(&profile)), total(&machine.calls));
        prop_assert!(profile.schema.find("wall").is_none());
    }
}

/// Programs whose stacks were mistaken once; what is persisted of the property's cases changes with
/// the kinds of acts there are.
#[test]
fn frames_without_events_are_told_apart_in_recursion() {
    use Act::{Body, C, Clause, Hidden, Method, Overflow, Return};
    let m = Method(0);
    let c = C(0);
    let hidden_below_a_call = vec![Method(2), Method(2), Hidden, m];
    // The body's clause is as deep as our note of the body.
    let overflow_to_a_clause = vec![
        m,
        m,
        m,
        m,
        Overflow(1),
        Hidden,
        m,
        m,
        Return,
        Return,
        m,
        m,
        Overflow(3),
        m,
    ];
    // What is hidden gives way to a second body.
    let body_for_a_hidden_frame = vec![m, m, Body(0), Hidden, m, Return, Return, Body(0), m];
    let hidden_frame_for_a_clause = vec![
        m, m, Clause, m, Return, Return, Hidden, m, Return, Return, Clause, m,
    ];
    // The method of C that is left is noted as deep as the clause and another one are.
    let clause_for_what_was_below_a_hidden_frame = vec![
        m, m, c, m, Return, m, Return, c, Hidden, m, Return, Return, Return, Return, Clause, c, m,
    ];
    for acts in [
        hidden_below_a_call,
        overflow_to_a_clause,
        body_for_a_hidden_frame,
        hidden_frame_for_a_clause,
        clause_for_what_was_below_a_hidden_frame,
    ] {
        for level in ["ruby", "all"] {
            let machine = traced(level, &[], &acts);
            assert_eq!(machine.unequal, [], "{acts:?} at level {level}");
        }
    }
}

#[test]
fn a_block_that_defines_a_method_is_one_call_told_twice() {
    let mut machine = traced(
        "ruby",
        &[],
        &[Act::BlockMethod(1), Act::Return, Act::BlockMethod(1)],
    );
    let calls = calls_by_path(&profile_of(&mut machine));
    assert_eq!(calls.values().copied().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_block_that_defines_a_method_is_a_call_of_its_own_when_it_is_called_as_a_block() {
    let pair = [
        Act::BlockMethod(1),
        Act::Return,
        Act::DefiningBlock(1),
        Act::Return,
        Act::DefiningBlock(1),
        Act::Return,
    ];
    for level in ["ruby", "count"] {
        let mut machine = traced(level, &[], &pair.repeat(2));
        let profile = profile_of(&mut machine);
        let sums =
            ["calls", "block_calls"].map(|it| by_path(&profile, &[it]).into_values().sum::<i64>());
        assert_eq!(sums, [2, 4], "level {level}");
    }
}

#[test]
fn the_callers_of_a_start_deep_in_the_stack_are_there_and_not_counted() {
    let before = [Act::Method(1), Act::Body(1), Act::Method(2), Act::C(1)];
    let after = [
        Act::Return,
        Act::Method(3),
        Act::Return,
        Act::Return,
        Act::Return,
        Act::Method(4),
    ];
    let mut machine = traced("ruby", &before, &after);
    assert_eq!(machine.unequal, []);
    let profile = profile_of(&mut machine);
    let mut depths: Vec<usize> = calls_by_path(&profile).keys().map(Vec::len).collect();
    depths.sort_unstable();
    assert_eq!(
        depths,
        [2, 4],
        "one from the first method, one from the third frame"
    );
}

#[test]
fn what_is_cleared_is_counted_before_and_not_again() {
    let mut machine = traced("ruby", &[], &[Act::Method(1), Act::Method(2)]);
    let first = profile_of(&mut machine);
    let now = ClockReading {
        ticks: machine.now,
        monotonic_ns: machine.now,
        realtime_ns: 0,
    };
    machine.tracer.as_mut().expect("it is traced").clear(now);
    machine.act(Act::Return);
    machine.act(Act::Method(3));
    let second = profile_of(&mut machine);
    let wall = first.schema.find("wall").expect("a column");
    assert_eq!(first.sum(wall) + second.sum(wall), machine.now as i64);
    let sum = |profile: &Profile| calls_by_path(profile).values().sum::<i64>();
    assert_eq!((sum(&first), sum(&second)), (2, 1));
}

#[test]
fn another_fiber_at_the_place_of_a_known_one_is_found_out() {
    let before = [Act::Method(1)];
    let after = [
        Act::SwitchFiber(1),
        Act::Method(2),
        Act::SwitchFiber(2),
        Act::Method(3),
        Act::Method(4),
        Act::SwitchFiber(0),
    ];
    let mut machine = traced("ruby", &before, &after);
    machine.swap_fibers(1, 2);
    for act in [
        Act::SwitchFiber(1),
        Act::Method(5),
        Act::SwitchFiber(2),
        Act::Method(5),
    ] {
        machine.act(act);
    }
    assert_eq!(machine.unequal, []);
}

thread_local! {
    static CLOCKS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

fn clocks() -> GcMoment {
    let (monotonic_ns, cpu_ns) = CLOCKS.get();
    GcMoment {
        monotonic_ns,
        cpu_ns,
    }
}

#[test]
fn time_that_the_system_took_away_is_taken_from_the_frame_of_the_long_gap() {
    let mut tracer = Tracer::new(level("ruby"), TraceClock::Monotonic, start());
    tracer.measure_cpu(clocks);
    let mut machine = Machine::new(level("ruby"));
    machine.begin(tracer);
    machine.act(Act::Method(1));
    machine.now += 200_000;
    CLOCKS.set((200_000, 60_000));
    machine.act(Act::Method(2));
    machine.act(Act::Method(3));
    // A collection has CPU time of its own.
    CLOCKS.set((200_020, 60_020));
    machine.act(Act::Collect(9, 9));
    let profile = profile_of(&mut machine);
    let column = |name| profile.schema.find(name).expect(name);
    let [wall, cpu] = ["wall", "cpu"].map(column);
    let missing: Vec<_> = profile
        .weights
        .iter()
        .filter(|row| row.key.state == State::Running && row.value(wall) != row.value(cpu))
        .map(|row| (row.key.node, row.value(wall) - row.value(cpu)))
        .collect();
    assert_eq!(missing, [(NodeId(1), 140_000)]);
}

#[test]
fn times_of_untold_c_methods_are_their_callers_at_level_ruby() {
    let acts = [
        Act::Method(1),
        Act::C(1),
        Act::Block(1),
        Act::Return,
        Act::Return,
        Act::Return,
    ];
    for (name, rows) in [("ruby", 0), ("all", 1)] {
        let mut machine = traced(name, &[], &acts);
        let profile = profile_of(&mut machine);
        let wall = profile.schema.find("wall").expect("a column");
        let of_c = profile.weights.iter().filter(|weight| {
            let node = weight.key.node;
            node != NodeId::ROOT && profile.tree.stack(node).count() == 2 && weight.value(wall) > 0
        });
        assert_eq!(of_c.count(), rows, "level {name}");
    }
}

//! Threads of other Ractors, by the clock: their hooks and handlers are called as the VM would.

use super::*;
use crate::collect::sample::{SampleSums, SumLimits};
use crate::collect::sample_key::SampleKey;
use crate::timer::other_holders::{Found, Interrupter};
use crate::timer::pace::Pace;
use crate::{Times, Values};
use rperf_model::{LabelSetId, Mode, State};
use rperf_vm::CapturedTree;
use rperf_vm::fake::FakeVm;
use std::time::Instant;

const CONFIG: RecorderConfig = RecorderConfig {
    mode: Mode::Wall,
    interval: 1_000_000,
    with_lines: true,
    layout: Some(rperf_vm::fake::LAYOUT),
    limits: SumLimits {
        aggregate: true,
        rows: 1 << 10,
    },
};

fn others() -> (OtherRactors, OtherHolders) {
    let others = OtherRactors::new(CONFIG, Arc::new(Pace::new(CONFIG.interval)), 5);
    others.begin(clock::monotonic_ns());
    let holders = OtherHolders::new(Interrupter {
        look: |_| Found::Awake,
        interrupt: |_, _| (),
    });
    (others, holders)
}

/// In a Ractor whose threads have no names.
struct Unnamed;

impl VmName for Unnamed {
    fn word(&self) -> usize {
        0
    }

    fn text(&self) -> Option<Arc<str>> {
        None
    }
}

/// The name of a thread, which stays the same.
struct Named(&'static str);

impl VmName for Named {
    fn word(&self) -> usize {
        self.0.as_ptr().addr()
    }

    fn text(&self) -> Option<Arc<str>> {
        Some(self.0.into())
    }
}

fn thread(number: usize) -> OtherThread {
    OtherThread {
        thread: VmThread(40 * number),
        slot: Box::leak(Box::default()),
        ractor: number as u32,
    }
}

fn vm(thread: OtherThread, frame: FrameWord) -> FakeVm {
    FakeVm::new(thread.thread, &[(frame, 7), (1, 3)])
}

fn run(length: Duration) {
    let began = Instant::now();
    while began.elapsed() < length {
        std::hint::spin_loop();
    }
}

/// The handler, for a tick now.
fn tick(holders: &OtherHolders, vm: &FakeVm) {
    let now = clock::monotonic_ns();
    let mut context = 0u8;
    let context = (&raw mut context).cast();
    holders.read(native::id(), now, context, 0, |owner| {
        // SAFETY: the owner is the recorder of the thread that runs here.
        unsafe { take_stack(owner, vm, native::id(), now, || false) };
    });
}

/// Nanoseconds at the leaf `frame` in `state`, of Ractor `ractor`.
fn at(merged: &Merged, frame: FrameWord, state: State, ractor: u32) -> u64 {
    let rows = merged.sums.sums.iter().filter(|(key, _)| {
        let row = (key.node.0 as usize).wrapping_sub(1);
        let node = merged.tree.nodes().get(row);
        node.is_some_and(|node| merged.tree.frames()[node.frame as usize] == frame)
            && key.state == state
            && key.labels.0 == ractor
    });
    rows.map(|(_, values)| values.times.wall_ns).sum()
}

/// Brings all threads up to now, and takes what was recorded of them.
fn take(others: &OtherRactors, ready: &OthersReady) -> Merged {
    let mut merged = Merged::new(&CONFIG);
    let now = clock::monotonic_ns();
    let rest = others.hand_over(now, ready, 0, u64::MAX, |part| add(&mut merged, part));
    assert_eq!(rest, None);
    merged
}

fn add(merged: &mut Merged, part: Part<'_>) {
    let (sums, truncated) = move_samples(part.sums, part.tree, &mut merged.tree, |labels| labels);
    merged.sums.merge(sums, CONFIG.limits);
    merged.counters.add(&part.counters);
    merged.names.add(part.names);
    merged.counters.truncated += truncated;
}

fn total(merged: &Merged) -> u64 {
    merged.sums.sums.values().map(|it| it.times.wall_ns).sum()
}

#[test]
fn threads_have_their_time_each_in_its_own_ractor() {
    let (others, holders) = others();
    let ready = OthersReady::default();
    for number in 1..=2 {
        let thread = thread(number);
        let vm = vm(thread, 10 * number);
        others.resumed(&holders, &vm, thread, 0);
        assert!(holders.is_any_running());
        run(Duration::from_millis(3));
        tick(&holders, &vm);
        others.suspended(&holders, &vm, thread, &Unnamed);
        assert!(!holders.is_any_running());
        others.exited(&holders, thread.thread);
    }
    assert_eq!(others.threads(), 0, "both have ended");
    let merged = take(&others, &ready);
    for ractor in 1..=2 {
        let time = at(&merged, 10 * ractor as usize, State::Running, ractor);
        assert!(time >= 3_000_000, "{time}");
    }
    assert_eq!(merged.counters.threads, 2);
    assert_eq!(merged.counters.capture.tick_stacks, 2);
    let rest = take(&others, &ready);
    assert_eq!((total(&rest), rest.counters.threads), (0, 0), "once");
}

#[test]
fn threads_have_their_names_when_they_have_ended_too() {
    let (others, holders) = others();
    let ready = OthersReady::default();
    let threads = [1, 2, 3].map(thread);
    let turn = |thread: OtherThread, name: &'static str| {
        let vm = vm(thread, 10);
        others.resumed(&holders, &vm, thread, 0);
        run(Duration::from_millis(2));
        tick(&holders, &vm);
        others.suspended(&holders, &vm, thread, &Named(name));
    };
    turn(threads[0], "lives");
    turn(threads[1], "first name");
    turn(threads[1], "last name");
    others.exited(&holders, threads[1].thread);
    others.empty_logs(clock::monotonic_ns());
    let merged = take(&others, &ready);
    let names =
        |merged: &Merged, seqs: [u32; 3]| seqs.map(|seq| merged.names.get(seq).map(str::to_owned));
    let expected = [Some("lives"), Some("last name"), None];
    assert_eq!(
        names(&merged, [1, 2, 3]),
        expected.map(|it| it.map(str::to_owned))
    );
    turn(threads[0], "renamed");
    turn(threads[2], "late");
    let merged = take(&others, &ready);
    let expected = [Some("renamed"), None, Some("late")];
    assert_eq!(
        names(&merged, [1, 2, 3]),
        expected.map(|it| it.map(str::to_owned))
    );
}

#[test]
fn one_that_never_stops_is_there_up_to_now_and_goes_on() {
    let (others, holders) = others();
    let (ready, thread) = (OthersReady::default(), thread(1));
    let vm = vm(thread, 10);
    let began = Instant::now();
    others.resumed(&holders, &vm, thread, 0);
    let mut sum = 0;
    for _ in 0..3 {
        run(Duration::from_millis(2));
        tick(&holders, &vm);
        run(Duration::from_millis(1));
        let merged = take(&others, &ready);
        assert_eq!(at(&merged, 10, State::Running, 1), total(&merged));
        sum += total(&merged);
    }
    let elapsed = began.elapsed().as_nanos() as u64;
    assert!((9_000_000..=elapsed).contains(&sum), "{sum} of {elapsed}");
    assert_eq!(others.threads(), 1);
}

#[test]
fn who_waits_has_the_stack_at_which_it_began_to() {
    let (others, holders) = others();
    let (ready, thread) = (OthersReady::default(), thread(1));
    others.resumed(&holders, &vm(thread, 10), thread, 0);
    others.suspended(&holders, &vm(thread, 20), thread, &Unnamed);
    std::thread::sleep(Duration::from_millis(5));
    let merged = take(&others, &ready);
    assert!(at(&merged, 20, State::GvlBlocked, 1) >= 4_000_000);
    std::thread::sleep(Duration::from_millis(5));
    others.resumed(&holders, &vm(thread, 20), thread, 0);
    let merged = take(&others, &ready);
    assert!(at(&merged, 20, State::GvlBlocked, 1) >= 4_000_000);
}

#[test]
fn hooks_dont_wait_and_lose_no_time() {
    let (others, holders) = others();
    let (ready, thread) = (OthersReady::default(), thread(1));
    let vm = vm(thread, 10);
    let began = Instant::now();
    others.resumed(&holders, &vm, thread, 0);
    tick(&holders, &vm);
    run(Duration::from_millis(2));
    {
        let _taken = others.recorder(thread).take();
        tick(&holders, &vm);
        others.suspended(&holders, &vm, thread, &Unnamed);
        std::thread::sleep(Duration::from_millis(2));
        others.resumed(&holders, &vm, thread, 0);
        tick(&holders, &vm);
    }
    tick(&holders, &vm);
    run(Duration::from_millis(2));
    others.suspended(&holders, &vm, thread, &Unnamed);
    let life = began.elapsed().as_nanos() as u64;
    let merged = take(&others, &ready);
    let sum = total(&merged);
    assert!(
        sum >= 6_000_000 && sum + 1_000_000 >= life,
        "{sum} of {life}"
    );
    assert_eq!(
        merged.counters.capture.tick_stacks, 1,
        "others found it taken, or behind"
    );
}

#[test]
fn the_worker_empties_logs_and_merges_what_has_ended() {
    let (others, holders) = others();
    let (alive, ended) = (thread(1), thread(2));
    for thread in [alive, ended] {
        let vm = vm(thread, 10);
        others.resumed(&holders, &vm, thread, 0);
        run(Duration::from_millis(1));
        tick(&holders, &vm);
        others.suspended(&holders, &vm, thread, &Unnamed);
    }
    others.exited(&holders, ended.thread);
    others.empty_logs(clock::monotonic_ns());
    assert_eq!(others.kept().recorders.len(), 1);
    let mut roots = Vec::new();
    others.each_root(|frame| roots.push(frame));
    assert!(roots.contains(&10) && roots.contains(&1));
    assert!(others.memory() > 0);
    assert_eq!(others.tend(&holders), None, "nobody runs");
    let vm = vm(alive, 10);
    others.resumed(&holders, &vm, alive, 0);
    assert!(others.tend(&holders).is_some());
}

/// Samples, one of each stack, of so many nanoseconds. The stacks are in `tree` then.
fn samples<'a>(
    tree: &mut CapturedTree,
    stacks: impl IntoIterator<Item = (&'a [FrameWord], u64)>,
) -> SampleSums {
    let mut sums = SampleSums::default();
    for (stack, wall_ns) in stacks {
        let node = tree.intern(stack, &[], &mut Default::default()).node;
        let values = Values {
            count: 1,
            times: Times::of(Mode::Wall, wall_ns),
        };
        let key = SampleKey {
            node,
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
            gc: None,
        };
        sums.sums.insert(key, values);
    }
    sums
}

#[test]
fn stacks_move_from_one_tree_to_another() {
    let mut from = CapturedTree::new(100);
    let mut to = CapturedTree::new(3);
    let sums = samples(&mut from, [(&[2, 1][..], 5), (&[3, 1], 7), (&[4, 1], 9)]);
    let (moved, truncated) = move_samples(sums, &from, &mut to, |_| LabelSetId(4));
    assert_eq!(truncated, 1, "one found no room");
    assert_eq!(moved.sums.len(), 3);
    assert_eq!(to.frames(), [1, 2, 3]);
    assert!(moved.sums.keys().all(|key| key.labels.0 == 4));
    let sum: u64 = moved.sums.values().map(|it| it.times.wall_ns).sum();
    assert_eq!(sum, 21);
}

#[test]
fn one_that_ends_without_a_wait_before_has_no_time_afterwards() {
    let (others, holders) = others();
    let (ready, thread) = (OthersReady::default(), thread(1));
    // It computed when time began to count, and no event had told of it.
    others.suspended(&holders, &vm(thread, 10), thread, &Unnamed);
    others.exited(&holders, thread.thread);
    assert_eq!(others.threads(), 0);
    let _ = take(&others, &ready);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(total(&take(&others, &ready)), 0);
}

#[test]
fn a_fault_before_the_recorder_is_taken_leaves_it_to_who_has_it() {
    let (others, holders) = others();
    let thread = thread(1);
    others.resumed(&holders, &vm(thread, 10), thread, 0);
    let recorder = others.recorder(thread);
    let taken = recorder.take();
    recorder.give_up();
    assert!(recorder.is_taken());
    drop(taken);
    assert!(!recorder.is_taken());
}

#[test]
fn the_worker_moves_a_large_tree_of_one_that_goes_on() {
    let (others, holders) = others();
    let (ready, thread) = (OthersReady::default(), thread(1));
    others.resumed(&holders, &vm(thread, 2), thread, 0);
    for round in 0..40 {
        for frame in 0..120 {
            run(Duration::from_micros(10));
            tick(&holders, &vm(thread, 10 + 120 * round + frame));
        }
        others.empty_logs(clock::monotonic_ns());
    }
    assert!(others.kept().merged.tree.nodes().len() > 1_000);
    let merged = take(&others, &ready);
    assert_eq!(merged.counters.capture.tick_stacks, 40 * 120);
    assert_eq!(merged.counters.threads, 1);
    let frames = merged.tree.frames();
    assert!(frames.contains(&10));
}

#[test]
fn what_is_handed_over_a_part_at_a_time_is_all_there() {
    let (others, holders) = others();
    let ready = OthersReady::default();
    let threads: Vec<_> = (1..=50).map(thread).collect();
    for (number, &thread) in threads.iter().enumerate() {
        let vm = vm(thread, 10 + number);
        others.resumed(&holders, &vm, thread, 0);
        run(Duration::from_micros(20));
        tick(&holders, &vm);
        others.suspended(&holders, &vm, thread, &Unnamed);
        if number % 2 == 0 {
            others.exited(&holders, thread.thread);
        }
    }
    let mut merged = Merged::new(&CONFIG);
    let (mut from, mut parts) = (0, 1);
    // Time is over at once: each time there is one thread.
    while let Some(next) = others.hand_over(clock::monotonic_ns(), &ready, from, 0, |part| {
        add(&mut merged, part);
    }) {
        (from, parts) = (next, parts + 1);
    }
    assert_eq!(parts, 51);
    assert_eq!(others.threads(), 25);
    for number in 0..50 {
        let time = at(&merged, 10 + number, State::Running, number as u32 + 1);
        assert!(time >= 20_000, "{time}");
    }
    assert_eq!(merged.counters.threads, 50);
}

#[test]
fn many_rows_are_handed_over_in_parts() {
    let config = RecorderConfig {
        limits: SumLimits {
            rows: 1 << 14,
            ..CONFIG.limits
        },
        ..CONFIG
    };
    let others = OtherRactors::new(config, Arc::new(Pace::new(config.interval)), 5);
    let ready = OthersReady::default();
    let mut from = CapturedTree::new(1 << 14);
    let frames: Vec<[FrameWord; 1]> = (1..=10_000).map(|frame| [frame]).collect();
    let rows = frames.iter().map(|stack| (&stack[..], stack[0] as u64));
    let sums = samples(&mut from, rows);
    others.kept().merged.add(&from, sums, 7);
    let mut merged = Merged::new(&config);
    let mut parts = Vec::new();
    let mut handed_over = |until_ns| {
        others.hand_over(clock::monotonic_ns(), &ready, 0, until_ns, |part| {
            parts.push(part.sums.rows());
            let (sums, truncated) =
                move_samples(part.sums, part.tree, &mut merged.tree, |labels| labels);
            assert_eq!(truncated, 0);
            merged.sums.merge(sums, config.limits);
        })
    };
    assert_eq!(handed_over(0), Some(0), "there was no time for all");
    assert_eq!(handed_over(u64::MAX), None);
    assert_eq!(parts.iter().sum::<usize>(), 10_000);
    assert!(parts.len() >= 10, "{parts:?}");
    assert_eq!(total(&merged), 10_000 * 10_001 / 2);
    assert_eq!(at(&merged, 5_000, State::Running, 7), 5_000);
    assert!(others.kept().merged.tree.nodes().is_empty());
}

#[test]
fn stacks_beyond_the_cap_of_the_merged_tree_are_counted() {
    let mut merged = Merged::new(&CONFIG);
    merged.tree = CapturedTree::new(1);
    let mut from = CapturedTree::new(100);
    let sums = samples(&mut from, [(&[1][..], 5), (&[2], 6), (&[3], 7)]);
    merged.add(&from, sums, 1);
    assert_eq!(merged.counters.truncated, 2);
    assert_eq!(total(&merged), 18, "their time is there");
}

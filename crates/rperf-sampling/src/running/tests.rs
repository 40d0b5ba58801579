//! The VM's events, as a simulated VM tells them, and the profile's sums after them.

mod idle_times;
#[cfg(target_os = "linux")]
mod missing;
mod names;
mod waits;

use super::*;
use crate::recording::NotedLabels;
use crate::threads::native;
use crate::tick_capture::Registers;
use crate::tick_capture::at_work::AtWork;
use crate::{DEFAULT_MAX_NODES, NO_OVERHEAD_LIMIT, TimerKind, Values};
use rperf_model::{GcCause, State};
use rperf_vm::fake::FakeVm;
use rperf_vm::{FiberWord, GcEvent, GcPhase, LabelSet, NativeId, VmThread, clock};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

const MAIN: VmThread = VmThread(40);
const OTHER: VmThread = VmThread(80);

const REGISTERS: Registers = Registers {
    instruction: 0,
    stack: 0,
    link: 0,
    context: 0,
    frame: 0,
    was_waiting: false,
};

const CONFIG: SessionConfig = SessionConfig {
    mode: Mode::Wall,
    blames: false,
    judges: false,
    frequency: 1000,
    max_overhead: NO_OVERHEAD_LIMIT,
    max_nodes: DEFAULT_MAX_NODES,
    timer: TimerKind::Sleep,
    aggregate: true,
};

/// A session whose time counts, in a VM where MAIN calls at `[3, 2, 1]`.
fn session() -> (FakeVm, RunningSession) {
    session_with(CONFIG)
}

fn session_with(config: SessionConfig) -> (FakeVm, RunningSession) {
    let vm = FakeVm::new(MAIN, &[(3, 31), (2, 21), (1, 11)]);
    let engine = Session::start(config, || ()).expect("a worker");
    let session = RunningSession::new(&vm, engine, SessionId(1), config, true, false);
    session.sections.add();
    session.begin_section(vm.gvl(), clock::monotonic_ns(), |_| false);
    session.sections.open();
    (vm, session)
}

fn thread<'a>(session: &RunningSession, thread: VmThread) -> &'a ThreadState {
    let state = session.turnover.new.push(ThreadState::new(thread));
    // SAFETY: the session keeps it; no test merges a thread and uses its state later.
    unsafe { &*state }
}

/// The bridge's part: does what an event has left to do. Returns which stack was taken.
fn complete(session: &RunningSession, vm: &FakeVm, follow_up: FollowUp<'_>) -> Option<WantedStack> {
    match follow_up {
        FollowUp::None => None,
        FollowUp::Record(wanted) => Some(record(session, vm, wanted)),
        FollowUp::KeepAlive(new_frames) => {
            vm.kept.borrow_mut().extend(&*new_frames);
            None
        }
    }
}

fn note_labels(session: &RunningSession, vm: &FakeVm, thread: &ThreadState) {
    let labels = vm.labels();
    let noted = NotedLabels {
        fiber: vm.fiber.get(),
        set: labels.as_ref(),
    };
    session.note_labels(vm.gvl(), thread, noted);
}

fn record(session: &RunningSession, vm: &FakeVm, wanted: Wanted<'_>) -> WantedStack {
    let which = wanted.stack;
    let mut backtrace = session.backtrace(vm.gvl()).expect("no borrow is held");
    let most = match which {
        WantedStack::Current(frames) => {
            assert_eq!(wanted.thread, vm.thread.get());
            frames
        }
        WantedStack::Other => usize::MAX,
        WantedStack::None => 0,
    };
    let (frames, lines) = backtrace.room();
    let depth = vm.backtrace_of(wanted.thread, frames, lines);
    let stack = backtrace.stack_up_to(most, depth);
    let stack = (which != WantedStack::None).then_some(stack);
    let new_frames = session.record(vm.gvl(), wanted, stack, vm.labels().as_ref());
    vm.kept.borrow_mut().extend(&*new_frames);
    which
}

fn sample(session: &RunningSession, vm: &FakeVm, thread: &ThreadState) -> Option<WantedStack> {
    let learned = session.learn(vm, vm.gvl(), thread);
    let follow_up = session.sample(vm.gvl(), thread, learned);
    complete(session, vm, follow_up)
}

fn resumed(session: &RunningSession, vm: &FakeVm, thread: &ThreadState) -> Option<WantedStack> {
    complete(session, vm, session.resumed(vm.gvl(), thread))
}

fn suspended(session: &RunningSession, vm: &FakeVm, thread: &ThreadState) {
    let which = complete(session, vm, session.suspended(vm.gvl(), thread, || 0));
    assert_eq!(which, None, "its slice waits for a tick");
}

fn begin_thread(session: &RunningSession, vm: &FakeVm, thread: &ThreadState, now: u64) {
    let is_current = thread.thread == vm.thread.get();
    session.begin_thread(vm.gvl(), thread, is_current, vm.labels().as_ref(), now);
}

fn is_epoch_over(session: &RunningSession, vm: &FakeVm) -> bool {
    let state = session.state(vm.gvl()).expect("no borrow is held");
    state.engine.is_epoch_over(clock::monotonic_ns())
}

/// Brings every thread up to now, which is returned.
fn flush(session: &RunningSession, vm: &FakeVm, has_ended: impl Fn(&ThreadState) -> bool) -> u64 {
    let threads = session.flush(vm.gvl(), vm.thread.get(), has_ended, 0, u64::MAX);
    let mut threads = threads.expect("no borrow is held");
    for wanted in threads.by_ref() {
        record(session, vm, wanted);
    }
    assert_eq!(threads.next_row(), None);
    threads.now_ns
}

fn pass_time() {
    let until = Instant::now() + Duration::from_millis(3);
    while Instant::now() < until {}
}

/// The sums of the session up to now, by state, and its counters.
fn sums(session: &RunningSession, vm: &FakeVm) -> (Vec<(State, Values)>, crate::Snapshot) {
    let now = flush(session, vm, |_| false);
    let mut state = session.state(vm.gvl()).expect("no borrow is held");
    let taken = state.engine.snapshot(now, Vec::new());
    let (taken, _) = taken.expect("the worker lives");
    let (snapshot, _) = taken.complete().expect("the worker lives");
    let sums = snapshot.collected.sums.iter();
    (
        sums.map(|(key, &values)| (key.state, values)).collect(),
        snapshot,
    )
}

fn sum_of(sums: &[(State, Values)], state: State) -> Values {
    let mut sum = Values::default();
    let of_state = sums.iter().filter(|row| row.0 == state);
    of_state.for_each(|row| sum.add(row.1));
    sum
}

#[test]
fn the_callback_samples_the_calling_thread() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    assert_eq!(sample(&session, &vm, main), None, "nothing is due yet");
    pass_time();
    session.ticks.tick();
    let all = WantedStack::Current(usize::MAX);
    assert_eq!(sample(&session, &vm, main), Some(all));
    assert!(!is_epoch_over(&session, &vm));
    assert_eq!(*vm.kept.borrow(), [1, 2, 3], "from the root");
    let (sums, snapshot) = sums(&session, &vm);
    let running = sum_of(&sums, State::Running);
    assert!(
        running.count >= 1 && running.times.wall_ns >= 3_000_000,
        "{running:?}"
    );
    assert_eq!(snapshot.counted.counters.capture.safepoint_stacks, 1);
    assert_eq!(snapshot.counted.counters.threads, 1);
}

#[test]
fn a_frame_that_the_vm_leaves_out_is_learned_at_the_safepoint() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    begin_thread(&session, &vm, main, clock::monotonic_ns());
    pass_time();
    vm.hidden.replace(vec![4]);
    session.ticks.tick();
    // SAFETY: nobody is at work on the log.
    let needs_callback = unsafe {
        session
            .stacks
            .at_ticks
            .take(&vm, 1, session.ticks.last_tick(), &REGISTERS)
    };
    assert!(needs_callback);
    vm.hidden.replace(vec![]);
    vm.set_stack(&[(5, 51), (4, 41), (3, 31), (2, 21), (1, 11)]);
    let of_tick = WantedStack::Current(4);
    assert_eq!(sample(&session, &vm, main), Some(of_tick));
    assert_eq!(*vm.kept.borrow(), [1, 2, 3, 4], "5 was called later");
    let (_, snapshot) = sums(&session, &vm);
    assert_eq!(snapshot.counted.counters.capture.hidden_frames, 1);
}

#[test]
fn stacks_taken_at_ticks_become_samples_at_the_next_event() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    begin_thread(&session, &vm, main, clock::monotonic_ns());
    pass_time();
    let labels = LabelSet::empty().with(vec![("a".into(), Some("b".into()))]);
    vm.labels.replace(Some(labels));
    note_labels(&session, &vm, main);
    let tick = clock::monotonic_ns();
    // SAFETY: nobody is at work on the log.
    let needs_callback = unsafe { session.stacks.at_ticks.take(&vm, 1, tick, &REGISTERS) };
    assert!(!needs_callback);
    assert!(vm.kept.borrow().is_empty(), "the handler runs no barriers");
    let mut roots = Vec::new();
    // SAFETY: nobody is at work on the log.
    unsafe { session.each_tick_root(|word| roots.push(word)) };
    assert_eq!(roots, [3, 2, 1]);
    suspended(&session, &vm, main);
    assert_eq!(*vm.kept.borrow(), [1, 2, 3]);
    let (sums, snapshot) = sums(&session, &vm);
    assert!(sum_of(&sums, State::Running).times.wall_ns >= 3_000_000);
    assert_eq!(snapshot.counted.counters.capture.tick_stacks, 1);
    assert_eq!(snapshot.texts.label_sets.len(), 1);
    assert!(!session.ticks.has_holder());
}

/// The handler's part at a tick, which finds the stack of the present fiber.
fn tick(session: &RunningSession, vm: &FakeVm) {
    pass_time();
    let now = clock::monotonic_ns();
    // SAFETY: nobody is at work on the log.
    let needs_callback = unsafe { session.stacks.at_ticks.take(vm, 1, now, &REGISTERS) };
    assert!(!needs_callback);
}

fn labelled(value: &str) -> Option<LabelSet> {
    Some(LabelSet::empty().with([("a".into(), Some(value.into()))]))
}

/// How many ticks became samples, by label, of those with one.
fn ticks_by_label(session: &RunningSession, vm: &FakeVm) -> Vec<(String, u64)> {
    let (_, snapshot) = sums(session, vm);
    let sets = &snapshot.texts.label_sets;
    let sums = snapshot.collected.sums.iter();
    let mut counts: Vec<_> = sums
        // A wait may make a sample, too, by chance.
        .filter(|(key, values)| {
            key.labels.0 != 0 && key.state == State::Running && values.count > 0
        })
        .map(|(key, values)| {
            let text = sets[key.labels.0 as usize - 1][0].1.to_string();
            (text, values.count)
        })
        .collect();
    counts.sort();
    counts
}

#[test]
fn a_tick_between_a_switch_of_fibers_and_its_event_has_the_labels_of_the_new_fiber() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    begin_thread(&session, &vm, main, clock::monotonic_ns());
    vm.fiber.set(FiberWord(7));
    vm.labels.replace(labelled("old"));
    note_labels(&session, &vm, main);
    tick(&session, &vm);
    vm.fiber.set(FiberWord(8));
    tick(&session, &vm);
    tick(&session, &vm);
    vm.labels.replace(labelled("new"));
    let labels = vm.labels();
    let present = NotedLabels {
        fiber: FiberWord(8),
        set: labels.as_ref(),
    };
    let guard = AtWork::begin(vm.gvl());
    let follow_up = session.fiber_switched(vm.gvl(), main, &guard, present);
    complete(&session, &vm, follow_up);
    assert_eq!(
        ticks_by_label(&session, &vm),
        [("new".to_owned(), 2), ("old".to_owned(), 1)]
    );
}

#[test]
fn a_tick_in_a_fiber_that_is_not_known_makes_no_sample_and_its_time_waits() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    let began = clock::monotonic_ns();
    begin_thread(&session, &vm, main, began);
    vm.fiber.set(FiberWord(7));
    vm.labels.replace(labelled("old"));
    note_labels(&session, &vm, main);
    vm.fiber.set(FiberWord(8));
    tick(&session, &vm);
    // An interrupt came before the event.
    suspended(&session, &vm, main);
    assert_eq!(ticks_by_label(&session, &vm), []);
    vm.labels.replace(labelled("new"));
    note_labels(&session, &vm, main);
    resumed(&session, &vm, main);
    tick(&session, &vm);
    suspended(&session, &vm, main);
    assert_eq!(ticks_by_label(&session, &vm), [("new".to_owned(), 1)]);
    native::leave();
}

#[test]
fn time_without_the_gvl_is_blocked_until_ready_and_then_waiting() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    resumed(&session, &vm, main);
    suspended(&session, &vm, main);
    pass_time();
    // SAFETY: the hooks' part is played here.
    unsafe { session.ready(MAIN) };
    assert_ne!(main.ready_ns.load(Relaxed), 0, "this is its native thread");
    pass_time();
    // Somebody else had the GVL meanwhile.
    let _ = session.ticks.set_holder(9, NativeId::NONE);
    resumed(&session, &vm, main);
    let (sums, _) = sums(&session, &vm);
    assert!(
        sum_of(&sums, State::GvlBlocked).times.wall_ns >= 3_000_000,
        "{sums:?}"
    );
    assert!(
        sum_of(&sums, State::GvlWait).times.wall_ns >= 3_000_000,
        "{sums:?}"
    );
    native::leave();
}

#[test]
fn a_thread_that_others_wake_is_ready_too() {
    let (vm, session) = session();
    let other = thread(&session, OTHER);
    // SAFETY: as above; no thread is noted to have run here.
    unsafe { session.ready(OTHER) };
    assert_eq!(other.ready_ns.load(Relaxed), 0);
    assert_ne!(session.waits.others_ready.since(OTHER), 0);
    vm.thread.set(OTHER);
    vm.set_stack(&[(1, 11)]);
    resumed(&session, &vm, other);
    assert_ne!(other.ready_ns.load(Relaxed), 0);
    suspended(&session, &vm, other);
    assert_eq!(session.waits.others_ready.since(OTHER), 0);
    native::leave();
}

#[test]
fn collections_are_accounted_and_make_their_thread_the_running_one() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    begin_thread(&session, &vm, main, clock::monotonic_ns());
    session.ticks.pause();
    session.ticks.go_on();
    assert!(!session.ticks.has_holder());
    let collect = |event, is_marking| {
        let phase = GcPhase {
            is_marking,
            cause: (event == GcEvent::Exit).then_some(GcCause::MajorStart),
        };
        let follow_up = session.collecting(vm.gvl(), event, phase, || main);
        complete(&session, &vm, follow_up)
    };
    collect(GcEvent::Enter, false);
    collect(GcEvent::MarkBegin, true);
    assert!(session.ticks.is_collecting());
    pass_time();
    collect(GcEvent::MarkEnd, false);
    collect(GcEvent::Exit, false);
    assert!(!session.ticks.is_collecting() && session.ticks.has_holder());
    let (sums, snapshot) = sums(&session, &vm);
    assert!(
        sum_of(&sums, State::GcMarking).times.wall_ns >= 3_000_000,
        "{sums:?}"
    );
    let mut collected = snapshot.collected.sums.iter();
    let is_collection = |state| matches!(state, State::GcMarking | State::GcSweeping);
    assert!(collected.all(|(key, _)| key.gc.is_some() == is_collection(key.state)));
    let told = session.gc.by_cause.told(true);
    let told: Vec<_> = told.iter().collect();
    assert_eq!(
        (told.len(), told[0].0, told[0].1.count),
        (1, GcCause::MajorStart, 1)
    );
    assert!(told[0].1.marking_ns >= 3_000_000 && told[0].1.pauses.count() == 1);
}

#[test]
fn ended_threads_are_merged_together() {
    let (vm, session) = session();
    let main = thread(&session, MAIN);
    resumed(&session, &vm, main);
    let count = |session: &RunningSession| {
        let state = session.state(vm.gvl()).expect("no borrow is held");
        state.threads.len()
    };
    for number in 1..=40 {
        let id = VmThread(1000 + number);
        let short = thread(&session, id);
        native::switch_to(short);
        // SAFETY: the hooks' part is played here.
        unsafe { session.exited(id, || None) };
        assert!(short.end.has_come());
        resumed(&session, &vm, main);
        let expected = if number < 32 { 0 } else { 1 + number % 32 };
        assert!(
            count(&session) <= expected,
            "after {number}: {}",
            count(&session)
        );
    }
    assert_eq!(count(&session), 1, "one batch of 32, and main");
    flush(&session, &vm, |_| false);
    assert_eq!(count(&session), 1);
    flush(&session, &vm, |thread| thread.thread == MAIN);
    assert_eq!(count(&session), 0, "it ended, though no event has told");
    native::leave();
}

#[test]
fn all_threads_of_a_section_are_accounted_from_its_begin_to_its_end() {
    let (vm, session) = session();
    vm.stacks.borrow_mut().insert(OTHER, vec![(7, 71), (1, 11)]);
    let (main, other) = (thread(&session, MAIN), thread(&session, OTHER));
    let now = clock::monotonic_ns();
    begin_thread(&session, &vm, main, now);
    begin_thread(&session, &vm, other, now);
    pass_time();
    session.sections.close();
    session.ticks.pause();
    for wanted in session.end_section(vm.gvl(), MAIN) {
        record(&session, &vm, wanted);
    }
    let section = clock::monotonic_ns() - now;
    pass_time();
    let (sums, snapshot) = sums(&session, &vm);
    let blocked = sum_of(&sums, State::GvlBlocked).times.wall_ns;
    assert!(
        (3_000_000..=section).contains(&blocked),
        "{section}: {sums:?}"
    );
    assert_eq!(snapshot.counted.counters.threads, 2);
    assert!(vm.kept.borrow().contains(&7), "at the other thread's stack");
    assert!(session.sections.ended_just_now());
}

#[test]
fn threads_that_are_brought_up_in_parts_have_all_of_their_time() {
    let (vm, session) = session();
    vm.stacks.borrow_mut().insert(OTHER, vec![(7, 71), (1, 11)]);
    let began = clock::monotonic_ns();
    for id in [MAIN, OTHER] {
        begin_thread(&session, &vm, thread(&session, id), began);
    }
    let part = |from, limit_ns| {
        let threads = session.flush(vm.gvl(), MAIN, |_| false, from, limit_ns);
        let mut threads = threads.expect("no borrow is held");
        let recorded = threads.by_ref().map(|wanted| record(&session, &vm, wanted));
        (recorded.count(), threads.next_row())
    };
    pass_time();
    assert_eq!(part(0, 0), (0, Some(0)), "there is no time for any");
    assert_eq!(part(1, u64::MAX), (1, None), "one is left out");
    pass_time();
    assert_eq!(part(5, u64::MAX), (0, None), "threads have ended meanwhile");
    let (sums, snapshot) = sums(&session, &vm);
    let life = snapshot.period.end_ns - began;
    let of_both: u64 = sums.iter().map(|(_, values)| values.times.wall_ns).sum();
    assert_eq!(of_both, 2 * life);
}

#[test]
fn a_session_fails_once() {
    let (_, session) = session();
    assert!(session.is_counting());
    assert!(session.fail());
    assert!(!session.fail() && session.is_over() && !session.is_counting());
}

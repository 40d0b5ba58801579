//! Ticks as the timer and the hooks make them, with a VM and threads that only count.

use super::probes::PROBE_INTERVAL_NS;
use super::*;
use crate::sync::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use crate::timer::interruption::Interruption;
use std::cell::Cell;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A tick of a timer that goes on, as its source has it.
fn tick(ticks: &Ticks) -> AfterTick {
    let after = ticks.tick();
    if matches!(after, AfterTick::GoOn { .. }) {
        ticks.timer().set();
    }
    after
}

/// A thread gets the GVL, and the timer is set if it rests. Returns whether it did.
fn hold(ticks: &Ticks, seq: u32, tid: NativeId) -> bool {
    let rested = ticks.set_holder(seq, tid);
    if rested {
        ticks.timer().set();
    }
    rested
}

#[test]
fn a_hand_over_writes_to_one_cache_line() {
    assert!(std::mem::offset_of!(Ticks, callback) <= 64);
}

#[test]
fn it_rests_at_the_first_idle_tick_and_the_next_holder_arms_it() {
    let ticks = Ticks::new(|| (), |_, _| panic!("no interruption was asked for"));
    assert!(hold(&ticks, 1, NativeId::NONE), "the first holder arms");
    assert!(!hold(&ticks, 1, NativeId::NONE), "once");
    for _ in 0..100 {
        assert_eq!(tick(&ticks), AfterTick::GoOn { in_slices: false });
    }
    ticks.clear_holder(2);
    let after_other = tick(&ticks);
    assert_eq!(
        after_other,
        AfterTick::GoOn { in_slices: true },
        "1 still runs"
    );
    ticks.clear_holder(1);
    assert_eq!(tick(&ticks), AfterTick::Rest);
    assert!(!ticks.armed());
    assert_eq!(tick(&ticks), AfterTick::None, "nobody has armed it");
    let free = ticks.free_since().expect("nobody has the GVL");
    assert!(!ticks.taken_since(free));
    assert!(
        hold(&ticks, 2, NativeId::NONE),
        "the next holder arms it again"
    );
    assert!(ticks.taken_since(free));
    assert_eq!(ticks.free_since(), None);
    assert_eq!(ticks.triggers(), 101);
    assert!(ticks.last_tick() > 0);
}

#[test]
fn it_rests_in_a_pause_and_the_first_holder_after_it_arms_it() {
    let ticks = Ticks::new(|| panic!("no tick in a pause"), |_, _| false);
    assert!(hold(&ticks, 1, NativeId::NONE));
    ticks.pause();
    assert!(ticks.armed(), "until the next expiry");
    ticks.go_on();
    assert!(
        !hold(&ticks, 1, NativeId::NONE),
        "a short pause needs no arming"
    );
    ticks.pause();
    assert_eq!(tick(&ticks), AfterTick::Rest);
    assert!(!ticks.armed());
    assert_eq!((ticks.triggers(), ticks.last_tick()), (0, 0));
    ticks.go_on();
    assert!(hold(&ticks, 1, NativeId::NONE));
}

thread_local! {
    /// What was asked of the VM: callbacks, and interrupted threads.
    static ASKED: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    static CAN_INTERRUPT: Cell<bool> = const { Cell::new(true) };
}

fn capturing() -> Ticks {
    let trigger = || ASKED.set((ASKED.get().0 + 1, ASKED.get().1));
    let interrupt = |tid, interruption: &Interruption| {
        assert_eq!(tid, NativeId(77));
        ASKED.set((ASKED.get().0, ASKED.get().1 + 1));
        CAN_INTERRUPT.get() && interruption.commit(tid)
    };
    let ticks = Ticks::new(trigger, interrupt);
    ticks.set_captures(true);
    ticks
}

#[test]
fn a_tick_interrupts_the_holder_and_asks_for_no_callback() {
    let ticks = capturing();
    assert!(hold(&ticks, 1, NativeId(77)));
    for _ in 0..5 {
        tick(&ticks);
        ticks.answered(NativeId(77));
    }
    assert_eq!(ASKED.get(), (0, 5));
    ticks.begin_collecting(clock::monotonic_ns());
    tick(&ticks);
    assert_eq!(ASKED.get(), (0, 5), "a tick in a collection is none");
    ticks.end_collecting();
    ticks.hold_interrupts();
    tick(&ticks);
    assert_eq!(ASKED.get(), (1, 5));
    ticks.at_safepoint();
    tick(&ticks);
    assert_eq!(ASKED.get(), (1, 6));
}

#[test]
fn where_the_holder_cannot_be_interrupted_the_callback_is_asked_for() {
    let ticks = capturing();
    CAN_INTERRUPT.set(false);
    let _ = hold(&ticks, 1, NativeId(77));
    tick(&ticks);
    assert_eq!(ASKED.get(), (1, 1));
    CAN_INTERRUPT.set(true);
    tick(&ticks);
    assert_eq!(ASKED.get(), (2, 1), "until the callback has run");
    assert!(ticks.is_callback_due());
    ticks.at_safepoint();
    assert!(!ticks.is_callback_due());
    tick(&ticks);
    assert_eq!(ASKED.get(), (2, 2));
    ticks.answered(NativeId(77));
    ticks.hold_interrupts();
    ticks.clear_holder(1);
    let _ = hold(&ticks, 1, NativeId(77));
    tick(&ticks);
    assert_eq!(ASKED.get(), (2, 3), "it has been out of the kernel since");
    // Its native thread isn't known.
    let _ = hold(&ticks, 1, NativeId::NONE);
    tick(&ticks);
    assert_eq!(ASKED.get(), (3, 3));
}

#[test]
fn a_collection_whose_end_nobody_saw_is_over_at_the_next_event() {
    let ticks = capturing();
    let _ = hold(&ticks, 1, NativeId(77));
    ticks.begin_collecting(1);
    tick(&ticks);
    assert_eq!(ASKED.get(), (0, 1), "too long for a collection");
    ticks.answered(NativeId(77));
    assert!(ticks.is_collecting());
    ticks.at_safepoint();
    assert!(!ticks.is_collecting());
    ticks.begin_collecting(clock::monotonic_ns());
    ticks.clear_holder(1);
    let _ = hold(&ticks, 1, NativeId(77));
    tick(&ticks);
    assert_eq!(ASKED.get(), (0, 2));
}

#[test]
fn a_thread_that_does_not_answer_gets_the_callback_after_a_while() {
    let ticks = capturing();
    let _ = hold(&ticks, 1, NativeId(77));
    tick(&ticks);
    tick(&ticks);
    assert_eq!(ASKED.get(), (0, 1), "it may wait for a CPU");
    let ages_ago = || ticks.interrupts.last.begin(NativeId(77), 1);
    ages_ago();
    tick(&ticks);
    assert_eq!(ASKED.get(), (1, 2));
    ticks.answered(NativeId(78));
    ages_ago();
    tick(&ticks);
    assert_eq!(ASKED.get(), (2, 3), "another thread's answer");
    ticks.answered(NativeId(77));
    tick(&ticks);
    assert_eq!(ASKED.get(), (2, 4));
}

#[test]
fn a_thread_that_gives_the_gvl_up_just_now_is_left_alone() {
    static TICKS: OnceLock<Ticks> = OnceLock::new();
    let ticks = TICKS.get_or_init(|| {
        let interrupt = |tid, interruption: &Interruption| {
            TICKS.get().expect("made").clear_holder(1);
            assert!(!interruption.commit(tid), "it may wait in the kernel");
            false
        };
        Ticks::new(|| panic!("the thread is awake"), interrupt)
    });
    ticks.set_captures(true);
    let _ = hold(ticks, 1, NativeId(77));
    tick(ticks);
    assert!(!ticks.has_holder() && !ticks.is_callback_due());
    assert!(!ticks.interrupts.awaits(NativeId(77)));
}

#[test]
fn an_idle_program_is_asked_once_for_the_callback() {
    let ticks = capturing();
    let _ = hold(&ticks, 1, NativeId(77));
    ticks.clear_holder(1);
    for _ in 0..3 {
        assert_eq!(tick(&ticks), AfterTick::Rest);
        assert_eq!(ASKED.get(), (1, 0));
        assert!(hold(&ticks, 1, NativeId(77)));
        ticks.clear_holder(1);
    }
    ticks.probes.due_ns.store(1, Relaxed);
    assert_eq!(
        (tick(&ticks), ASKED.get()),
        (AfterTick::Rest, (2, 0)),
        "a while later"
    );
}

#[test]
fn the_timer_may_be_stopped_where_nobody_has_the_gvl_and_a_probe_is_not_due() {
    let ticks = capturing();
    let now = clock::monotonic_ns();
    assert!(hold(&ticks, 1, NativeId(77)));
    ticks.clear_holder(1);
    assert!(
        !ticks.ask_for_stop(now, || 0),
        "the first tick asks for the callback"
    );
    assert_eq!(tick(&ticks), AfterTick::Rest);
    assert!(hold(&ticks, 1, NativeId(77)));
    let now = clock::monotonic_ns();
    assert!(!ticks.ask_for_stop(now, || 0), "somebody has the GVL");
    ticks.clear_holder(1);
    let not_asked = || unreachable!("nobody may stop it");
    assert!(ticks.ask_for_stop(now, || 0) && ticks.timer().take());
    assert!(!ticks.ask_for_stop(now, not_asked), "somebody stops it");
    ticks.timer().note_stop(now);
    let _ = ticks.set_holder(2, NativeId(77));
    assert!(!ticks.comes_to_rest(), "somebody has it by now");
    ticks.timer().set();
    ticks.clear_holder(2);
    assert!(ticks.timer().take() && ticks.comes_to_rest() && !ticks.armed());
    assert!(hold(&ticks, 1, NativeId(77)));
    ticks.clear_holder(1);
    let other = ticks
        .others
        .enter(NativeId(78), std::ptr::null_mut(), 0, now);
    assert!(
        !ticks.ask_for_stop(now, not_asked),
        "one of another Ractor runs"
    );
    ticks.others.clear();
    assert!(other.is_some());
    assert!(ticks.ask_for_stop(now, || 0), "it runs again");
    assert!(
        !ticks.ask_for_stop(now + 2 * PROBE_INTERVAL_NS, not_asked),
        "a probe is due"
    );
}

#[test]
fn gaps_are_even_once_a_thread_has_kept_the_gvl_for_many_ticks() {
    let ticks = capturing();
    let in_slices = || match tick(&ticks) {
        AfterTick::GoOn { in_slices } => in_slices,
        other => panic!("{other:?}"),
    };
    assert!(hold(&ticks, 1, NativeId(77)));
    assert!(!in_slices(), "nobody has given it up yet");
    let give_up = || {
        ticks.clear_holder(1);
        let _ = ticks.set_holder(1, NativeId(77));
    };
    let collect = || ticks.begin_collecting(clock::monotonic_ns());
    for disturb in [&give_up as &dyn Fn(), &collect] {
        disturb();
        assert!(in_slices());
        ticks.end_collecting();
        assert!((1..1000).take_while(|_| in_slices()).count() >= 10);
        assert!(!in_slices());
    }
}

#[test]
fn probes_become_rare_until_one_finds_a_thread_that_no_event_told_of() {
    let ticks = capturing();
    let interval = || ticks.probes.interval_ns.load(Relaxed);
    let probe = || {
        ticks.probes.due_ns.store(1, Relaxed);
        assert!(hold(&ticks, 1, NativeId(77)));
        ticks.clear_holder(1);
        assert_eq!(tick(&ticks), AfterTick::Rest);
    };
    for times in [1, 2, 4, 8, 8] {
        assert_eq!(interval(), times * PROBE_INTERVAL_NS);
        probe();
        assert!(hold(&ticks, 1, NativeId(77)));
        ticks.at_safepoint();
        ticks.clear_holder(1);
        assert_eq!(tick(&ticks), AfterTick::Rest);
    }
    ticks.at_safepoint();
    assert_eq!(interval(), PROBE_INTERVAL_NS);
}

#[test]
fn each_tick_that_finds_nobody_asks_where_threads_run_without_an_event() {
    let ticks = capturing();
    ticks.expect_missing_resumptions();
    for turn in 1..=3 {
        assert!(hold(&ticks, 1, NativeId(77)));
        ticks.clear_holder(1);
        let not_asked = || unreachable!("nobody may stop it");
        assert!(!ticks.ask_for_stop(clock::monotonic_ns(), not_asked));
        assert_eq!(tick(&ticks), AfterTick::Rest);
        assert_eq!(ASKED.get(), (turn, 0));
        ticks.at_safepoint();
    }
}

/// A timer whose expiry is a flag, and which notes that it has one owner at a time.
struct FlagTimer {
    ticks: Ticks,
    is_pending: AtomicBool,
    is_owned: AtomicBool,
    fired: AtomicU64,
}

impl FlagTimer {
    fn own(&self) {
        assert!(!self.is_owned.swap(true, SeqCst), "two owners");
        std::hint::spin_loop();
        self.is_owned.store(false, SeqCst);
    }

    fn arm(&self) {
        self.own();
        self.ticks.timer().set();
        self.is_pending.store(true, SeqCst);
    }

    fn stop(&self) {
        if self.ticks.timer().take() {
            self.own();
            self.is_pending.store(false, SeqCst);
            if !self.ticks.comes_to_rest() {
                self.arm();
            }
        }
    }

    fn expire(&self) {
        if self.is_pending.swap(false, SeqCst) {
            self.fired.fetch_add(1, SeqCst);
            if let AfterTick::GoOn { .. } = self.ticks.tick() {
                self.own();
                self.is_pending.store(true, SeqCst);
                self.ticks.timer().set();
            }
        }
    }
}

#[test]
fn whoever_holds_the_gvl_has_ticks_whatever_stops_the_timer_meanwhile() {
    let timer = FlagTimer {
        ticks: Ticks::new(|| (), |_, _| true),
        is_pending: AtomicBool::new(false),
        is_owned: AtomicBool::new(false),
        fired: AtomicU64::new(0),
    };
    let (timer, gvl, is_over) = (&timer, &Mutex::new(()), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let programs = [1, 2].map(|seq| {
            scope.spawn(move || {
                for turn in 0..100_000_u32 {
                    let guard = gvl.lock().expect("nobody panics");
                    if timer.ticks.set_holder(seq, NativeId::NONE) {
                        timer.arm();
                    }
                    if turn % 16 == 0 {
                        let until = Instant::now() + Duration::from_secs(10);
                        let before = timer.fired.load(SeqCst);
                        while timer.fired.load(SeqCst) == before {
                            assert!(Instant::now() < until, "no tick comes any more");
                            std::thread::yield_now();
                        }
                    }
                    timer.ticks.clear_holder(seq);
                    // Before others get it, or beside them.
                    let kept = (turn % 3 == 0).then_some(guard);
                    if turn % 2 == 0 {
                        timer.stop();
                    }
                    drop(kept);
                }
            })
        });
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                timer.expire();
                std::thread::yield_now();
            }
        });
        let ended = programs.map(|program| program.join());
        is_over.store(true, SeqCst);
        assert!(ended.iter().all(Result::is_ok), "they have had their ticks");
    });
}

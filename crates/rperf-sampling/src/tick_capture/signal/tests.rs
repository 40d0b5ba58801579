//! The handlers on real threads.

use super::*;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

static TAKEN: AtomicU64 = AtomicU64::new(0);
static TRIGGERED: AtomicU64 = AtomicU64::new(0);
static RETURNED: AtomicU64 = AtomicU64::new(0);
static FAULTY: AtomicBool = AtomicBool::new(false);

/// Reads what may fault. There are no other Ractors.
struct Stacks;

impl TakeStacks for Stacks {
    unsafe fn take(&self, _: u32, _: u64, registers: &Registers) {
        assert_ne!(registers.instruction, 0);
        TAKEN.fetch_add(1, SeqCst);
        if FAULTY.load(SeqCst) {
            let nowhere = std::hint::black_box(ptr::null_mut::<u64>());
            // SAFETY: none: it faults, and that is what the test is about.
            unsafe { ptr::write_volatile(nowhere, 1) };
        }
        RETURNED.fetch_add(1, SeqCst);
    }

    unsafe fn take_other(&self, _: *mut c_void, _: NativeId, _: u64, _: &Registers) {}

    unsafe fn give_up(&self, _: *mut c_void) {}
}

fn install(ticks: &Arc<Ticks>) -> io::Result<TickSignal> {
    use_signal_stack(64 << 10);
    TickSignal::install(Arc::clone(ticks), Box::new(Stacks))
}

/// Runs a thread that computes with registers of all kinds until told to stop.
/// Returns its id and a way to end it, which says whether the result is right.
fn computing_thread() -> (NativeId, impl FnOnce() -> bool) {
    let (tell, told) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        use_signal_stack(64 << 10);
        tell.send(clock::thread_id()).expect("a listener");
        let (float, whole) = results();
        let mut right = true;
        while !stopped.load(SeqCst) {
            set_errno(77);
            right &= results() == (float, whole) && errno() == 77;
        }
        right
    });
    let tid = told.recv().expect("the id");
    (tid, move || {
        stop.store(true, SeqCst);
        thread.join().is_ok_and(|right| right)
    })
}

/// What the timer does.
fn send_to(tid: NativeId) -> bool {
    let interruption = Interruption::default();
    interruption.begin(tid, 0);
    interrupt(tid, &interruption)
}

fn results() -> (f64, u64) {
    let float = (1..2000).map(|n| f64::from(n).sqrt() * 0.5).sum();
    let whole = (1..2000u64).map(|n| (n * n) ^ (n << 7)).sum();
    std::hint::black_box((float, whole))
}

fn interrupt_until(tid: NativeId, reached: impl Fn() -> bool) {
    let began = Instant::now();
    while !reached() && began.elapsed() < Duration::from_secs(60) {
        assert!(send_to(tid), "the thread is there");
        thread::sleep(Duration::from_micros(50));
    }
    assert!(reached());
}

#[test]
fn a_thread_whose_signal_stack_is_small_ends_captures() {
    let _one_at_a_time = HANDLERS.lock();
    let ticks = Arc::new(Ticks::new(|| (), super::interrupt));
    let installed = install(&ticks).expect("free");
    ticks.set_captures(true);
    let thread = thread::spawn(move || {
        use_signal_stack(8 << 10);
        // SAFETY: takes numbers; the handler is ours.
        unsafe { libc::raise(INTERRUPT) };
    });
    thread.join().expect("no panic");
    assert!(!ticks.captures());
    assert!(take_unreadable() > 0);
    drop(installed);
}

#[test]
fn the_holder_is_interrupted_and_goes_on_whatever_is_read() {
    let _one_at_a_time = HANDLERS.lock();
    let trigger = || {
        TRIGGERED.fetch_add(1, SeqCst);
    };
    let ticks = Arc::new(Ticks::new(trigger, super::interrupt));
    assert!(!send_to(NativeId(1)), "nothing is installed");
    let before = action_of(FAULT).expect("readable");
    let installed = install(&ticks).expect("free");
    assert!(install(&ticks).is_err());
    let (tid, finish) = computing_thread();

    // Not the holder: it is left alone.
    for _ in 0..100 {
        assert!(send_to(tid));
        thread::sleep(Duration::from_micros(50));
    }
    assert_eq!((TAKEN.load(SeqCst), TRIGGERED.load(SeqCst)), (0, 0));

    let _armed = ticks.set_holder(1, tid);
    interrupt_until(tid, || TAKEN.load(SeqCst) > 50);
    assert_eq!(TRIGGERED.load(SeqCst), 0, "the stack is there");

    FAULTY.store(true, SeqCst);
    let taken = TAKEN.load(SeqCst);
    interrupt_until(tid, || TAKEN.load(SeqCst) > taken + 50);
    FAULTY.store(false, SeqCst);
    let returned = RETURNED.load(SeqCst);
    assert!(TAKEN.load(SeqCst) >= returned + 50, "the others faulted");
    interrupt_until(tid, || RETURNED.load(SeqCst) > returned + 50);
    // Where it can't be read, the callback is asked for.
    let unreadable = take_unreadable();
    assert!(unreadable >= 50);
    assert_eq!(TRIGGERED.load(SeqCst), unreadable);

    // A program that takes the signal for itself gets none of ours.
    let mut theirs = action_of(INTERRUPT).expect("readable");
    let ours = theirs;
    theirs.sa_sigaction = libc::SIG_IGN;
    put_action(INTERRUPT, &theirs).expect("allowed");
    assert!(!send_to(tid));
    put_action(INTERRUPT, &ours).expect("allowed");

    assert!(finish(), "the thread has computed what it should");
    drop(installed);
    assert_eq!(AT_WORK.count(), 0);
    assert_eq!(
        action_of(INTERRUPT).expect("readable").sa_sigaction,
        libc::SIG_DFL
    );
    assert_eq!(
        action_of(FAULT).expect("readable").sa_sigaction,
        before.sa_sigaction
    );
    assert!(!send_to(tid));

    // As compaction does: a handler that comes within a session and goes after it.
    let again = install(&ticks).expect("free");
    let ours = action_of(FAULT).expect("readable");
    put_action(FAULT, &before).expect("allowed");
    assert!(!send_to(clock::thread_id()));
    drop(again);
    put_action(FAULT, &ours).expect("allowed");
    drop(install(&ticks).expect("free"));
    assert_eq!(
        action_of(FAULT).expect("readable").sa_sigaction,
        before.sa_sigaction
    );

    // Another one that stays may hand on to ours.
    let theirs = Theirs::action(Theirs::of_three as *const () as usize, libc::SA_SIGINFO);
    put_action(FAULT, &theirs).expect("allowed");
    let refused = install(&ticks).expect_err("not ours");
    assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
    put_action(FAULT, &before).expect("allowed");
}

static HANDED_ON: AtomicU64 = AtomicU64::new(0);

/// A program's own handlers.
struct Theirs;

impl Theirs {
    fn action(handler: usize, flags: c_int) -> libc::sigaction {
        let mut action = default_action();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        action
    }

    extern "C" fn of_one(signal: c_int) {
        HANDED_ON.fetch_add(signal as u64, SeqCst);
    }

    extern "C" fn of_three(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        assert!(!info.is_null() && !context.is_null());
        HANDED_ON.fetch_add(100 * signal as u64, SeqCst);
    }
}

#[test]
fn other_faults_are_handed_on_to_who_took_them_before() {
    let mut info = MaybeUninit::<siginfo_t>::zeroed();
    let mut context = MaybeUninit::<ucontext_t>::zeroed();
    let handlers = [
        (Theirs::of_one as *const () as usize, 0),
        (Theirs::of_three as *const () as usize, libc::SA_SIGINFO),
    ];
    for (handler, flags) in handlers {
        let previous = Theirs::action(handler, flags);
        let context = context.as_mut_ptr().cast();
        hand_on(&previous, libc::SIGSEGV, info.as_mut_ptr(), context);
    }
    assert_eq!(HANDED_ON.load(SeqCst), 101 * libc::SIGSEGV as u64);
}

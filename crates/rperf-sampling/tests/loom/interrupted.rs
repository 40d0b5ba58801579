//! The timer interrupts threads that give their GVL up just then. A signal that came in a system call
//! without the GVL would end it early.

use crate::atomics::large;
use crate::timer::interruption::Interruption;
use crate::timer::other_holders::{Found, Interrupter, OtherHolders};
use crate::timer::ticks::{AfterTick, Ticks};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use rperf_vm::NativeId;
use std::ffi::c_void;

const THREAD: NativeId = NativeId(7);
const SEQ: u32 = 1;

/// The thread is in a system call without the GVL.
const IS_OUT: usize = 1;
/// A signal has been sent to it.
const IS_SENT: usize = 2;

loom::lazy_static! {
    /// What the kernel knows: system calls come one after the other.
    static ref KERNEL: AtomicUsize = AtomicUsize::new(0);
}

/// The signal, as `signal.rs` sends it.
fn send(tid: NativeId, interruption: &Interruption) -> bool {
    let is_meant = interruption.commit(tid);
    if is_meant {
        let before = KERNEL.fetch_or(IS_SENT, Relaxed);
        assert_eq!(before & IS_OUT, 0, "a system call ends early");
    }
    is_meant
}

fn send_to_other(tid: NativeId, interruption: &Interruption) {
    match send(tid, interruption) {
        true => interruption.sent(tid),
        false => {
            interruption.withdraw(tid);
        }
    }
}

/// Whether the calling thread's handler has to run.
fn is_sent() -> bool {
    KERNEL.fetch_and(!IS_SENT, Relaxed) & IS_SENT != 0
}

/// The holder gives the GVL up during a tick, and may have answered before.
pub fn who_leaves() {
    KERNEL.store(0, Relaxed);
    let ticks = Arc::new(large(|| Ticks::new(|| (), send)));
    ticks.set_captures(true);
    ticks.clear_holder(SEQ);
    assert!(ticks.set_holder(SEQ, THREAD), "nobody has started it");
    ticks.timer().set();
    ticks.answered(THREAD);
    let timer = Arc::clone(&ticks);
    let timer = thread::spawn(move || {
        if matches!(timer.tick(), AfterTick::GoOn { .. }) {
            timer.timer().set();
        }
    });
    if is_sent() {
        ticks.answered(THREAD);
    }
    ticks.clear_holder(SEQ);
    KERNEL.fetch_or(IS_OUT, Relaxed);
    timer.join().expect("it doesn't panic");
}

fn others() -> Arc<Box<OtherHolders>> {
    let interrupter = Interrupter {
        look: |_| Found::Awake,
        interrupt: send_to_other,
    };
    Arc::new(large(move || OtherHolders::new(interrupter)))
}

/// A thread of another Ractor gives its GVL up during a tick.
pub fn who_leaves_another_ractor() {
    KERNEL.store(0, Relaxed);
    let others = others();
    let owner = std::ptr::dangling_mut::<c_void>();
    let place = others.enter(THREAD, owner, 0, 0);
    assert!(others.tick(true) && is_sent(), "all places are touched");
    others.leave(place);
    let place = others.enter(THREAD, owner, 0, 0);
    let timer = Arc::clone(&others);
    let timer = thread::spawn(move || {
        timer.tick(true);
    });
    others.leave(place);
    KERNEL.fetch_or(IS_OUT, Relaxed);
    timer.join().expect("it doesn't panic");
}

/// A pause begins while the handler of a thread of another Ractor reads a stack.
pub fn cleared() {
    let others = others();
    let recorder = Arc::new(UnsafeCell::new(0));
    let owner: *mut c_void = std::ptr::dangling_mut();
    let context: *mut c_void = std::ptr::dangling_mut();
    others.clear();
    others.enter(THREAD, owner, 0, 0);
    others.read(THREAD, 0, context, 0, |_| ());
    let (handler, writes) = (Arc::clone(&others), Arc::clone(&recorder));
    let handler = thread::spawn(move || {
        handler.read(THREAD, 0, context, 0, |_| {
            // SAFETY: loom says if it isn't alone.
            writes.with_mut(|it| unsafe { *it += 1 });
        });
    });
    others.clear();
    // SAFETY: loom says if it isn't alone.
    recorder.with_mut(|it| unsafe { *it += 1 });
    handler.join().expect("it doesn't panic");
}

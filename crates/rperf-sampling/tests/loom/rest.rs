//! The timer comes to rest while a thread gets the GVL, which would start one that rests.

use crate::atomics::large;
use crate::timer::ticks::{AfterTick, Ticks};
use loom::sync::Arc;
use loom::thread;
use rperf_vm::NativeId;

const SEQ: u32 = 1;

/// Whose timer runs, with nobody who has the GVL.
fn ticks() -> Arc<Box<Ticks>> {
    let ticks = Arc::new(large(|| Ticks::new(|| (), |_, _| true)));
    hold(&ticks);
    ticks.clear_holder(SEQ);
    // What the timer alone writes to is touched.
    assert!(!ticks.is_callback_due() && ticks.last_tick() == 0);
    ticks
}

fn hold(ticks: &Ticks) {
    if ticks.set_holder(SEQ, NativeId::NONE) {
        ticks.timer().set();
    }
}

fn expire(ticks: &Ticks) {
    if matches!(ticks.tick(), AfterTick::GoOn { .. }) {
        ticks.timer().set();
    }
}

/// A thread gets the GVL at a tick that finds nobody.
pub fn who_comes() {
    let ticks = ticks();
    let timer = Arc::clone(&ticks);
    let timer = thread::spawn(move || expire(&timer));
    hold(&ticks);
    timer.join().expect("it doesn't panic");
    assert!(ticks.armed(), "it rests, and nobody starts it");
}

/// A pause ends at its first tick.
pub fn pause_ends() {
    let ticks = ticks();
    ticks.pause();
    let timer = Arc::clone(&ticks);
    let timer = thread::spawn(move || expire(&timer));
    ticks.go_on();
    hold(&ticks);
    timer.join().expect("it doesn't panic");
    assert!(ticks.armed(), "it rests, and nobody starts it");
}

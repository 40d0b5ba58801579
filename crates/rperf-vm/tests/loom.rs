//! The lock-free parts under loom, which runs them with every order of their atomic accesses
//! that the memory model allows. Their files are compiled here once more, with loom's atomics
//! as `crate::sync`.

#![allow(dead_code, reason = "of some parts the models need little")]

mod sync {
    pub use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
}

#[path = "../src/ids.rs"]
mod ids;
#[path = "../src/others_ready.rs"]
mod others_ready;

use ids::VmThread;
use loom::sync::Arc;
use loom::thread;
use others_ready::OthersReady;

fn main() {
    let models: [(&str, fn()); 2] = [
        ("a ready thread is found", ready),
        ("of two threads that share a cell one is noted", shared_cell),
    ];
    for (name, model) in models {
        loom::model(model);
        eprintln!("loom: {name}: ok");
    }
}

const FIRST: VmThread = VmThread(40);

/// Another thread wakes the first one while a snapshot asks.
fn ready() {
    let ready = Arc::new(OthersReady::default());
    let waker = Arc::clone(&ready);
    let waker = thread::spawn(move || waker.note(FIRST, 10));
    assert!([0, 10].contains(&ready.since(FIRST)));
    waker.join().expect("it doesn't panic");
    assert_eq!(ready.since(FIRST), 10);
    ready.note(FIRST, 20);
    assert_eq!(ready.since(FIRST), 10, "it has been ready for longer");
    ready.forget(FIRST);
    assert_eq!(ready.since(FIRST), 0);
}

/// Two threads are woken at once whose cell is the same.
fn shared_cell() {
    let second = (FIRST.0 + 8..).step_by(8).map(VmThread);
    let mut second = second.filter(|&other| OthersReady::share_cell(FIRST, other));
    let second = second.next().expect("there are fewer cells than threads");
    let ready = Arc::new(OthersReady::default());
    let waker = Arc::clone(&ready);
    let waker = thread::spawn(move || waker.note(FIRST, 10));
    ready.note(second, 20);
    waker.join().expect("it doesn't panic");
    let since = [FIRST, second].map(|thread| ready.since(thread));
    assert_eq!(
        since.iter().filter(|&&since| since == 0).count(),
        1,
        "{since:?}"
    );
    // Both were noted at the same time, so it doesn't matter whose time it is.
    assert!(since.iter().all(|since| [0, 10, 20].contains(since)));
}

//! The lock-free parts under loom, which runs them with every order of their atomic accesses
//! that the memory model allows. Their files are compiled here once more, with loom's atomics
//! as `crate::sync`.

#![allow(
    dead_code,
    unused_imports,
    reason = "of some parts the models need little, and of their tests nothing"
)]

mod atomics;

mod sync {
    pub use crate::atomics::*;
}

mod gvl {
    pub use rperf_vm::Gvl;
}

#[path = "../../src/ids.rs"]
mod ids;
#[path = "../../src/others_ready.rs"]
mod others_ready;
#[path = "../../src/session_slot.rs"]
mod session_slot;
#[path = "../../src/waiters.rs"]
mod waiters;

use atomics::{Model, Orders};
use gvl::Gvl;
use ids::VmThread;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use others_ready::OthersReady;
use session_slot::{SessionPart, SessionSlot};
use waiters::{Waiters, Waits};

fn main() {
    atomics::run(&[
        Model {
            name: "a ready thread is found",
            model: ready,
            switches: 2,
            fails_with: None,
        },
        Model {
            name: "of two threads that share a cell one is noted",
            model: shared_cell,
            switches: 2,
            fails_with: None,
        },
        Model {
            name: "a hook finds a whole session",
            model: session,
            switches: 2,
            fails_with: Some(Orders::AllRelaxed),
        },
        Model {
            name: "a hook finds a whole part of a session",
            model: part,
            switches: 2,
            fails_with: Some(Orders::AllRelaxed),
        },
        Model {
            name: "one of two who let go of a session gets it",
            model: abandoned,
            switches: 2,
            fails_with: None,
        },
        Model {
            name: "sums of waits are read as a whole, or not at all",
            model: read_waits,
            switches: 3,
            fails_with: Some(Orders::WithoutFences),
        },
        Model {
            name: "of two threads that come to wait, both are counted",
            model: two_waiters,
            switches: 2,
            fails_with: Some(Orders::AllRelaxed),
        },
    ]);
}

const FIRST: VmThread = VmThread(40);

/// Another thread wakes the first one while a snapshot asks.
fn ready() {
    let ready = Arc::new(atomics::large(OthersReady::default));
    assert_eq!(ready.since(FIRST), 0);
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
    let ready = Arc::new(atomics::large(OthersReady::default));
    ready.note(FIRST, 5);
    ready.forget(FIRST);
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

/// What a session is made of.
struct Session(AtomicUsize);

impl Session {
    fn new() -> Self {
        let session = Session(AtomicUsize::new(0));
        session.0.store(7, Relaxed);
        session
    }

    fn is_whole(&self) -> bool {
        self.0.load(Relaxed) == 7
    }
}

/// A hook looks for the session, without the GVL, while that is put in.
fn session() {
    // SAFETY: the only thread of the model that has the token.
    let mut gvl = unsafe { Gvl::assume_held() };
    let slot = Arc::new(SessionSlot::empty());
    assert!(slot.is_empty());
    let hook = Arc::clone(&slot);
    let hook = thread::spawn(move || {
        // SAFETY: the session is freed after this thread's end.
        let found: Option<&Session> = unsafe { hook.get_unguarded() };
        found.is_none_or(Session::is_whole)
    });
    slot.put(&gvl, Box::new(Session::new()));
    assert!(hook.join().expect("it doesn't panic"), "half a session");
    // SAFETY: there is no hook any more.
    assert!(unsafe { slot.take(&mut gvl) }.is_some_and(|session| session.is_whole()));
}

/// A hook looks for its part of the session while that is noted and forgotten.
fn part() {
    // SAFETY: the only thread of the model that has the token.
    let mut gvl = unsafe { Gvl::assume_held() };
    let shared = Arc::new((SessionSlot::empty(), SessionPart::none()));
    assert!(shared.0.is_empty() && shared.1.get(&gvl).is_none());
    let hook = Arc::clone(&shared);
    let hook = thread::spawn(move || {
        // SAFETY: the session is freed after this thread's end.
        let found: Option<&Session> = unsafe { hook.1.get_unguarded() };
        found.is_none_or(Session::is_whole)
    });
    let (slot, part) = &*shared;
    let session = slot.put(&gvl, Box::new([Session::new(), Session::new()]));
    // SAFETY: it is forgotten below.
    unsafe { part.note(&session[1]) };
    part.forget();
    assert!(hook.join().expect("it doesn't panic"), "half a part");
    // SAFETY: there is no hook any more.
    assert!(unsafe { slot.take(&mut gvl) }.is_some());
}

/// The VM ends on one thread while another one forks, and each lets go of the session.
fn abandoned() {
    // SAFETY: the only thread of the model that has the token.
    let gvl = unsafe { Gvl::assume_held() };
    let slot = Arc::new(SessionSlot::empty());
    let session: *const Session = slot.put(&gvl, Box::new(Session::new()));
    let other = Arc::clone(&slot);
    let other = thread::spawn(move || other.abandon().is_some());
    let own = slot.abandon().is_some();
    assert_ne!(own, other.join().expect("it doesn't panic"));
    assert!(slot.is_empty());
    // SAFETY: from the Box, and nobody uses it any more.
    drop(unsafe { Box::from_raw(session.cast_mut()) });
}

/// Nobody waits, and all that a wait of these threads changes has been used.
fn waiters(threads: &[VmThread]) -> Arc<Box<Waiters>> {
    let waiters = Arc::new(atomics::large(Waiters::default));
    for &thread in threads {
        waiters.join(thread, 5);
        assert_eq!(waiters.leave(thread, 5), Some(5));
    }
    waiters
}

/// A thread waits for 10 ns while another one reads the sums. Loom finds more orders where it is the reader that
/// was begun.
fn read_waits() {
    let waiters = waiters(&[FIRST]);
    let reader = Arc::clone(&waiters);
    let reader = thread::spawn(move || reader.up_to_in_handler(15));
    waiters.join(FIRST, 10);
    waiters.leave(FIRST, 20);
    if let Some(seen) = reader.join().expect("it doesn't panic") {
        let [before, meanwhile, after] =
            [(0, 0), (5, 1), (10, 0)].map(|(ns, threads)| Waits { ns, threads });
        assert!([before, meanwhile, after].contains(&seen), "{seen:?}");
    }
    assert_eq!(waiters.up_to(30), Some(Waits { ns: 10, threads: 0 }));
}

/// Two threads become ready at once, one of which gets the GVL.
fn two_waiters() {
    let second = VmThread(FIRST.0 + 40);
    let waiters = waiters(&[FIRST, second]);
    let other = Arc::clone(&waiters);
    let other = thread::spawn(move || other.join(second, 20));
    waiters.join(FIRST, 10);
    assert_eq!(waiters.leave(FIRST, 15), Some(10));
    other.join().expect("it doesn't panic");
    assert_eq!(waiters.up_to(30), Some(Waits { ns: 15, threads: 1 }));
    assert_eq!(waiters.leave(second, 40), Some(20));
    assert_eq!(waiters.up_to(50), Some(Waits { ns: 25, threads: 0 }));
}

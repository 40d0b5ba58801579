//! The lock-free parts under loom, which runs them with every order of their atomic accesses
//! that the memory model allows. Their files are compiled here once more, with loom's atomics
//! as `crate::sync`.

#![allow(
    dead_code,
    unused_imports,
    reason = "of some parts the models need little, and of their tests nothing"
)]

#[path = "../../../rperf-vm/tests/loom/atomics.rs"]
mod atomics;
mod interrupted;
mod lent;
mod rest;

mod sync {
    pub use crate::atomics::*;
}

#[path = "../../src/tick_capture/signal/in_use.rs"]
mod in_use;

#[path = "../../src/threads"]
mod threads {
    mod new_list;
    mod thread_end;

    pub use new_list::NewList;
    pub use thread_end::ThreadEnd;
}

#[path = "../../src/timer"]
mod timer {
    pub mod calm;
    pub mod idle_times;
    pub mod interruption;
    pub mod other_holders;
    pub mod ticks;
    pub mod timer_state;
}

use atomics::{Model, Orders};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use threads::{NewList, ThreadEnd};

fn main() {
    atomics::run(&[
        Model {
            name: "each new thread is taken in once",
            model: new_threads,
            switches: 2,
            fails_with: None,
        },
        Model {
            name: "a new thread's state is whole",
            model: new_thread_is_whole,
            switches: 2,
            fails_with: Some(Orders::AllRelaxed),
        },
        Model {
            name: "what a thread did comes before its end",
            model: thread_end,
            switches: 2,
            fails_with: Some(Orders::AllRelaxed),
        },
        Model {
            name: "no signal is sent to a thread that has given the GVL up",
            model: interrupted::who_leaves,
            switches: 2,
            fails_with: Some(Orders::WithoutTotalOrder),
        },
        Model {
            name: "nor to one that has left another Ractor's GVL",
            model: interrupted::who_leaves_another_ractor,
            switches: 2,
            fails_with: Some(Orders::WithoutTotalOrder),
        },
        Model {
            name: "nobody reads a stack for a place that was cleared",
            model: interrupted::cleared,
            switches: 1,
            // With weaker orders there are too many ways to look at its 32 places.
            fails_with: None,
        },
        Model {
            name: "the timer doesn't rest while a thread has the GVL",
            model: rest::who_comes,
            switches: 2,
            fails_with: Some(Orders::WithoutTotalOrder),
        },
        Model {
            name: "nor once a pause is over",
            model: rest::pause_ends,
            switches: 2,
            fails_with: Some(Orders::WithoutTotalOrder),
        },
        Model {
            name: "what handlers use is freed after they have left",
            model: lent::taken_back,
            switches: 2,
            fails_with: Some(Orders::WithoutTotalOrder),
        },
    ]);
}

/// Two hooks push while the holder of the GVL takes the list.
fn new_threads() {
    let list = Arc::new(NewList::default());
    list.take_into(&mut Vec::new());
    let pushers = [1, 2].map(|number| {
        let list = Arc::clone(&list);
        thread::spawn(move || {
            list.push(Box::new(number));
        })
    });
    let mut taken = Vec::new();
    list.take_into(&mut taken);
    pushers
        .into_iter()
        .for_each(|pusher| pusher.join().expect("it doesn't panic"));
    list.take_into(&mut taken);
    taken.sort();
    assert_eq!(taken, [Box::new(1), Box::new(2)]);
}

/// What was written to an item before it was pushed is there when it is taken.
fn new_thread_is_whole() {
    let list = Arc::new(NewList::<AtomicUsize>::default());
    list.take_into(&mut Vec::new());
    let pusher = Arc::clone(&list);
    let pusher = thread::spawn(move || {
        let item = Box::new(AtomicUsize::new(0));
        item.store(7, Relaxed);
        pusher.push(item);
    });
    let mut taken = Vec::new();
    list.take_into(&mut taken);
    assert!(taken.iter().all(|item| item.load(Relaxed) == 7));
    pusher.join().expect("it doesn't panic");
}

/// A thread notes its end as its last touch; another frees what it used.
fn thread_end() {
    let thread = Arc::new((AtomicUsize::new(0), ThreadEnd::default()));
    assert!(!thread.1.has_come());
    let ending = Arc::clone(&thread);
    let ending = thread::spawn(move || {
        ending.0.store(1, Relaxed);
        ending.1.note(7);
    });
    if thread.1.has_come() {
        assert_eq!((thread.0.load(Relaxed), thread.1.cpu_ns()), (1, Some(7)));
    } else if let Some(cpu_ns) = thread.1.cpu_ns() {
        assert_eq!((thread.0.load(Relaxed), cpu_ns), (1, 7));
    }
    ending.join().expect("it doesn't panic");
    assert!(thread.1.has_come());
}

//! The lock-free parts under loom, which runs them with every order of their atomic accesses
//! that the memory model allows. Their files are compiled here once more, with loom's atomics
//! as `crate::sync`. The timer's rest (`ticks.rs`) is not among them: it relies on one order of
//! all accesses that are SeqCst, which loom doesn't know.

#![allow(dead_code, reason = "of some parts the models need little")]

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
}

#[path = "../src/threads"]
mod threads {
    mod new_list;
    mod thread_end;

    pub use new_list::NewList;
    pub use thread_end::ThreadEnd;
}

use loom::sync::Arc;
use loom::thread;
use sync::AtomicUsize;
use sync::Ordering::Relaxed;
use threads::{NewList, ThreadEnd};

fn main() {
    let models: [(&str, fn()); 3] = [
        ("each new thread is taken in once", new_threads),
        ("a new thread's state is whole", new_thread_is_whole),
        ("what a thread did comes before its end", thread_end),
    ];
    for (name, model) in models {
        loom::model(model);
        eprintln!("loom: {name}: ok");
    }
}

/// Two hooks push while the holder of the GVL takes the list.
fn new_threads() {
    let list = Arc::new(NewList::default());
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
    let list = Arc::new(NewList::default());
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

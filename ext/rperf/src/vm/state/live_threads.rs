//! Which threads are alive. Asking runs the VM's code and may let other threads
//! run: whoever asks looks again afterwards whether the session is there still.

use crate::vm::Process;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::state::thread_state;
use crate::vm::state::thread_state::{ThreadState};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value, prelude::*, value::Lazy};
use rb_sys::VALUE;
use std::hint::black_box;
use std::ptr;

/// The main Ractor's threads at one moment.
pub struct Alive {
    list: RArray,
    /// In the order of the list: the main thread comes first.
    threads: Vec<VALUE>,
    sorted: Vec<VALUE>,
    /// Threads with a greater serial were seen after that moment.
    last_serial: u64,
}

impl Alive {
    /// As of now.
    pub fn list(ruby: &Ruby) -> Result<Alive, Error> {
        let last_serial = thread_state::last_serial();
        let list: RArray = ruby.get_inner(&LIST).funcall("call", ())?;
        // A program may have its own Thread.list: only what is a Thread counts.
        let class = ruby.class_thread();
        let threads = list.into_iter();
        let threads = threads.filter(|thread: &Value| thread.is_kind_of(class));
        let threads: Vec<VALUE> = threads.map(|thread| thread.as_raw()).collect();
        let mut sorted = threads.clone();
        sorted.sort_unstable();
        Ok(Alive {
            list,
            threads,
            sorted,
            last_serial,
        })
    }

    /// The threads in the order of Thread.list; their objects are alive as long as this is.
    pub fn threads(&self) -> impl Iterator<Item = VALUE> + '_ {
        self.threads.iter().copied()
    }

    /// Whether the thread of `state` is one of them, or was seen later.
    pub fn has(&self, process: &Process, state: &ThreadState) -> bool {
        state.serial > self.last_serial
            || (self.sorted.binary_search(&state.thread).is_ok()
                // Another thread's object may have taken the place of this one's.
                && thread_hook::known_state(process, state.thread)
                    .is_some_and(|known| ptr::eq(known, state)))
    }

    /// Whether the thread of `state` has ended, though no EXITED may have told of
    /// it: such a thread is past its EXITED. The VM lists threads until they are at
    /// the end of their code, and EXITED runs under a lock that whoever is given the
    /// GVL next has to take.
    pub fn lacks(&self, process: &Process, state: &ThreadState) -> bool {
        !self.has(process, state)
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Keeps the list on the stack, where the garbage collector finds it.
        black_box(self.list.as_raw());
    }
}

/// Finds Thread.list. On the main thread, when the extension is loaded.
pub fn init(ruby: &Ruby) {
    Lazy::force(&LIST, ruby);
}

/// Thread.list as it was when the extension was loaded.
static LIST: Lazy<Value> = Lazy::new(|ruby| {
    let list = ruby.class_thread().funcall("method", ("list",));
    list.unwrap_or_else(|_| ruby.qnil().as_value())
});

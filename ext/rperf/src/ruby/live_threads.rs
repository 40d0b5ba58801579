//! Which threads are alive. Asked for by methods of the native API; asking runs the VM's code.

use super::kept_method::KeptMethod;
use super::threads::{RubyThread, vm_thread};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, TryConvert, Value, prelude::*};
use rperf_sampling::threads::{ThreadState, last_serial};
use rperf_vm::{Gvl, VmThread};
use std::hint::black_box;
use std::ptr;
use std::sync::OnceLock;

/// The main Ractor's threads at one moment.
pub struct LiveThreads {
    list: RArray,
    /// In the order of the list: the main thread comes first.
    threads: Vec<Value>,
    sorted: Vec<VmThread>,
    /// Threads with a greater serial were seen after that moment.
    last_serial: u64,
}

impl LiveThreads {
    /// The main Ractor's threads as of now. Runs Ruby code.
    pub fn list(ruby: &Ruby, _: &mut Gvl<'_>) -> Result<LiveThreads, Error> {
        let last_serial = last_serial();
        let list = LIST
            .get()
            .map_or_else(|| Ok(ruby.qnil().as_value()), KeptMethod::call)?;
        let list = RArray::try_convert(list)?;
        // A program may have its own Thread.list: only what is a Thread counts.
        let class = ruby.class_thread();
        let threads = list.into_iter();
        let threads: Vec<Value> = threads.filter(|thread| thread.is_kind_of(class)).collect();
        let mut sorted: Vec<VmThread> = threads.iter().map(|it| vm_thread(it.as_raw())).collect();
        sorted.sort_unstable();
        Ok(LiveThreads {
            list,
            threads,
            sorted,
            last_serial,
        })
    }

    /// The threads in the order of Thread.list, while no others have run.
    pub fn threads(&self) -> impl Iterator<Item = RubyThread<'_>> + '_ {
        self.threads.iter().map(|&object| self.thread(object))
    }

    /// The thread of an object of the list, which is at this place.
    fn thread(&self, object: Value) -> RubyThread<'_> {
        // SAFETY: a Thread, which the list keeps alive as long as this is. It is where it was, as
        // no others have run since, or the caller has it on the stack.
        unsafe { RubyThread::from_raw(object.as_raw()) }
    }

    /// How many there were.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The thread at `place` with its object, where that is now: once others have run, the object
    /// of a thread that has ended may have moved. The caller keeps it on the stack, where it
    /// stays. `None` if a program has taken it out of the list.
    pub fn at(&self, place: usize) -> Option<(RubyThread<'_>, Value)> {
        let object: Value = self.list.entry(isize::try_from(place).ok()?).ok()?;
        object
            .is_kind_of(Ruby::get_with(object).class_thread())
            .then(|| (self.thread(object), object))
    }

    /// The thread of `state`, if it is one of them, or was seen later.
    fn thread_of(&self, gvl: &Gvl<'_>, state: &ThreadState) -> Option<RubyThread<'_>> {
        let is_later = state.serial > self.last_serial;
        if !is_later {
            self.sorted.binary_search(&state.thread).ok()?;
        }
        // SAFETY: the list keeps its threads alive. One that was seen later has its first
        // events behind it, and its end, if it has come, is reported by an event.
        let thread = unsafe { RubyThread::from_vm(state.thread) };
        // Another thread's object may have taken the place of this one's.
        let is_same = |known: &ThreadState| ptr::eq(known, state);
        (is_later || thread.known_state(gvl).is_some_and(is_same)).then_some(thread)
    }

    /// Whether the thread of `state` has ended, though no EXITED may have told of
    /// it: such a thread is past its EXITED. The VM lists threads until they are at
    /// the end of their code, and EXITED runs under a lock that whoever is given the
    /// GVL next has to take.
    pub fn lacks(&self, gvl: &Gvl<'_>, state: &ThreadState) -> bool {
        self.thread_of(gvl, state).is_none()
    }

    /// Lets the thread of `state` forget it. Returns whether that was possible: a thread that
    /// is ending or gone can't be touched, and neither can its slot.
    pub fn forget_state(&self, gvl: &Gvl<'_>, state: &ThreadState) -> bool {
        self.thread_of(gvl, state)
            .map(RubyThread::forget_state)
            .is_some()
    }
}

impl Drop for LiveThreads {
    fn drop(&mut self) {
        // Keeps the list on the stack, where the garbage collector finds it.
        black_box(self.list.as_raw());
    }
}

/// Thread.list. A program may have its own.
static LIST: OnceLock<KeptMethod> = OnceLock::new();

/// Finds Thread.list. On the main thread, when the extension is loaded.
pub fn init(ruby: &Ruby) {
    if let Some(list) = KeptMethod::of(ruby, ruby.class_thread(), "list") {
        let _ = LIST.set(list);
    }
}

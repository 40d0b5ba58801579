//! Which threads of other Ractors than the main one run, and on which native threads. Each Ractor
//! has a GVL of its own, so there may be several. Only atomics: the hooks of these threads write,
//! the timer reads in its signal handler, and so does the handler on the thread itself.

use crate::sync::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::SeqCst, yield_now,
};
use crate::timer::interruption::Interruption;
use rperf_vm::NativeId;
use std::array;
use std::ffi::c_void;
use std::ptr;

/// Threads that can run at the same time: the VM runs those of other Ractors on a few native
/// threads. A further one is accounted, but has no ticks.
const PLACES: usize = 32;

/// In place of a native thread: the place is being taken.
const TAKEN: NativeId = NativeId(u32::MAX);

/// What the timer has found a native thread at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The thread runs.
    Awake,
    /// The thread waits in the kernel for another one, as it does where another Ractor collects
    /// garbage. A signal does no harm there, but its stack must not be read.
    Stopped,
    /// The thread sleeps in another system call, which a signal could end early.
    Asleep,
}

/// What interrupts native threads.
#[derive(Debug, Clone, Copy)]
pub struct Interrupter {
    /// Looks at it.
    pub look: fn(NativeId) -> Found,
    /// Interrupts it, unless it calls it off.
    pub interrupt: fn(NativeId, &Interruption),
}

/// The places of threads that run.
#[derive(Debug)]
pub struct OtherHolders {
    places: [Place; PLACES],
    /// How many run, with those that found no place.
    running: AtomicU32,
    interrupter: Interrupter,
}

// Two threads write to two cache lines.
#[derive(Debug)]
#[repr(align(64))]
struct Place {
    /// The native thread, or 0 if the place is free.
    native_id: AtomicU32,
    interruption: Interruption,
    /// Whether the thread slept in the kernel at the last tick. When it wakes, it runs there before
    /// it is out.
    was_asleep: AtomicBool,
    /// What its stacks are taken for.
    owner: AtomicPtr<c_void>,
    /// The context that the handler interrupted, while it reads frames; else null. Only who has set
    /// it writes to the next two.
    reading: AtomicPtr<c_void>,
    /// The native thread that reads; else 0.
    reader: AtomicU32,
    errno: AtomicI32,
    /// When it came here, in ns: a tick that is older is none of its.
    since_ns: AtomicU64,
}

/// A thread whose stack was being read when that faulted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// The context that the handler had interrupted.
    pub context: *mut c_void,
    /// `errno` then.
    pub errno: i32,
}

impl OtherHolders {
    /// Nobody runs.
    pub fn new(interrupter: Interrupter) -> Self {
        Self {
            places: array::from_fn(|_| Place {
                native_id: AtomicU32::new(0),
                interruption: Interruption::default(),
                was_asleep: AtomicBool::new(false),
                owner: AtomicPtr::new(ptr::null_mut()),
                reading: AtomicPtr::new(ptr::null_mut()),
                reader: AtomicU32::new(0),
                errno: AtomicI32::new(0),
                since_ns: AtomicU64::new(0),
            }),
            running: AtomicU32::new(0),
            interrupter,
        }
    }

    /// Whether some thread runs.
    #[inline]
    pub fn is_any_running(&self) -> bool {
        self.running.load(SeqCst) != 0
    }

    /// The calling thread has got its Ractor's GVL at `now`, on native thread `native_id`: its
    /// stacks are taken for `owner`. Returns its place, preferably `hint`; `None` if all are taken.
    pub fn enter(
        &self,
        native_id: NativeId,
        owner: *mut c_void,
        hint: usize,
        now: u64,
    ) -> Option<usize> {
        self.running.fetch_add(1, SeqCst);
        let rows = (0..PLACES).map(|row| (hint + row) % PLACES);
        for row in rows {
            let place = &self.places[row];
            let is_free = place.native_id.load(Relaxed) == 0;
            if is_free
                && place
                    .native_id
                    .compare_exchange(0, TAKEN.0, SeqCst, Relaxed)
                    .is_ok()
            {
                place.owner.store(owner, Relaxed);
                place.was_asleep.store(false, Relaxed);
                place.since_ns.store(now, Relaxed);
                place.native_id.store(native_id.0, SeqCst);
                return Some(row);
            }
        }
        None
    }

    /// The calling thread gives its GVL up, and leaves its place, if it had one. Afterwards no
    /// interruption is on its way to it.
    pub fn leave(&self, place: Option<usize>) {
        if let Some(place) = place.and_then(|row| self.places.get(row)) {
            let native_id = NativeId(place.native_id.swap(0, SeqCst));
            place.interruption.leave(native_id);
            // A signal that comes now finds nobody who could answer.
            place.interruption.answered(native_id);
        }
        // After a pause nobody is known to run.
        let fewer = |running: u32| running.checked_sub(1);
        let _ = self.running.fetch_update(SeqCst, Relaxed, fewer);
    }

    /// Nobody is known to run any more: no time counts. Afterwards no interruption is on its way to
    /// those that ran before, and no handler reads a stack for them. Waits for those that do.
    pub fn clear(&self) {
        for place in &self.places {
            // Nobody else comes here until the handler has left.
            let native_id = NativeId(place.native_id.swap(TAKEN.0, SeqCst));
            place.interruption.leave(native_id);
            place.interruption.answered(native_id);
            while !place.reading.load(SeqCst).is_null() {
                yield_now();
            }
            place.native_id.store(0, SeqCst);
        }
        self.running.store(0, SeqCst);
    }

    /// A tick: interrupts all that run, if `captures`. Returns whether any does. Called by the
    /// timer.
    pub fn tick(&self, captures: bool) -> bool {
        let is_any = self.is_any_running();
        if is_any && captures {
            self.places.iter().for_each(|place| self.interrupt(place));
        }
        is_any
    }

    fn interrupt(&self, place: &Place) {
        let native_id = NativeId(place.native_id.load(SeqCst));
        if !native_id.is_known() || native_id == TAKEN {
            return;
        }
        let found = (self.interrupter.look)(native_id);
        let was_asleep = place.was_asleep.swap(found == Found::Asleep, Relaxed);
        if found == Found::Awake && !was_asleep {
            place.interruption.begin(native_id, 0);
            if place.native_id.load(SeqCst) == native_id.0 {
                (self.interrupter.interrupt)(native_id, &place.interruption);
            } else {
                place.interruption.withdraw(native_id);
            }
        }
    }

    /// What stacks of the thread are taken for that runs on native thread `native_id`, the calling
    /// one, unless it came there after `tick_ns`. `read` is called with it, in a handler that has
    /// interrupted `context`. If it faults, [`OtherHolders::take_interrupted`] gives it up.
    /// Async-signal-safe.
    pub fn read(
        &self,
        native_id: NativeId,
        tick_ns: u64,
        context: *mut c_void,
        errno: i32,
        read: impl FnOnce(*mut c_void),
    ) {
        let Some(place) = self.place_of(native_id) else {
            return;
        };
        place.interruption.answered(native_id);
        if place.since_ns.load(Relaxed) <= tick_ns && place.begin_reading(context) {
            place.errno.store(errno, Relaxed);
            place.reader.store(native_id.0, SeqCst);
            let owner = place.owner.load(Acquire);
            // Either this sees that the place was cleared, or `clear` sees that it is read for.
            if place.native_id.load(SeqCst) == native_id.0 {
                read(owner);
            }
            place.end_reading();
        }
    }

    /// Reading a stack has faulted on the calling thread, native thread `native_id`: `give_up` is
    /// called with what it was taken for. `None` if it was reading none. Async-signal-safe.
    pub fn take_interrupted(
        &self,
        native_id: NativeId,
        give_up: impl FnOnce(*mut c_void),
    ) -> Option<Interrupted> {
        // By the reader: the place may have been cleared meanwhile.
        let mut places = self.places.iter();
        let place = places.find(|place| place.reader.load(SeqCst) == native_id.0)?;
        let interrupted = Interrupted {
            context: place.reading.load(SeqCst),
            errno: place.errno.load(Relaxed),
        };
        // The owner may be freed as soon as nobody reads for it.
        give_up(place.owner.load(Acquire));
        place.end_reading();
        Some(interrupted)
    }

    fn place_of(&self, native_id: NativeId) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| place.native_id.load(SeqCst) == native_id.0)
    }
}

impl Place {
    /// The handler begins to read. Returns whether nobody else does, as one might who lost the place
    /// meanwhile.
    fn begin_reading(&self, context: *mut c_void) -> bool {
        let nobody = ptr::null_mut();
        self.reading
            .compare_exchange(nobody, context, SeqCst, Relaxed)
            .is_ok()
    }

    fn end_reading(&self) {
        self.reader.store(0, SeqCst);
        self.reading.store(ptr::null_mut(), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static FOUND: RefCell<Vec<Found>> = const { RefCell::new(Vec::new()) };
        static INTERRUPTED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }

    fn holders() -> OtherHolders {
        OtherHolders::new(Interrupter {
            look: |_| FOUND.with_borrow_mut(|found| found.pop().unwrap_or(Found::Awake)),
            interrupt: |id, interruption| {
                assert!(interruption.commit(id));
                INTERRUPTED.with_borrow_mut(|ids| ids.push(id.0));
            },
        })
    }

    fn interrupted() -> Vec<u32> {
        INTERRUPTED.take()
    }

    #[test]
    fn all_that_run_are_interrupted() {
        let holders = holders();
        assert!(!holders.tick(true));
        let first = holders.enter(NativeId(7), ptr::null_mut(), 0, 1);
        let second = holders.enter(NativeId(8), ptr::null_mut(), 0, 1);
        assert_eq!((first, second), (Some(0), Some(1)));
        assert!(holders.tick(true));
        assert_eq!(interrupted(), [7, 8]);
        assert!(holders.tick(false), "somebody runs all the same");
        holders.leave(first);
        assert!(holders.tick(true));
        assert_eq!(interrupted(), [8]);
        holders.leave(second);
        assert!(!holders.tick(true) && interrupted().is_empty());
    }

    #[test]
    fn one_that_finds_no_place_runs_all_the_same() {
        let holders = holders();
        let places: Vec<_> = (1..=PLACES as u32 + 1)
            .map(|id| holders.enter(NativeId(id), ptr::null_mut(), 5, 1))
            .collect();
        assert_eq!(places.iter().flatten().count(), PLACES);
        assert_eq!(places.last(), Some(&None));
        places.iter().for_each(|&place| holders.leave(place));
        assert!(!holders.is_any_running());
        holders.leave(None);
        assert!(!holders.is_any_running(), "after a pause");
    }

    #[test]
    fn one_that_was_asleep_is_left_alone_once_more() {
        let holders = holders();
        let _ = holders.enter(NativeId(7), ptr::null_mut(), 0, 1);
        FOUND.set(vec![Found::Awake, Found::Awake, Found::Asleep]);
        for expected in [&[][..], &[], &[7]] {
            holders.tick(true);
            assert_eq!(interrupted(), expected);
        }
        FOUND.set(vec![Found::Awake, Found::Stopped]);
        for expected in [&[][..], &[7]] {
            holders.tick(true);
            assert_eq!(interrupted(), expected);
        }
    }

    #[test]
    fn the_handler_reads_for_the_owner_of_its_native_thread() {
        let holders = holders();
        let mut owner = 1u8;
        let owner: *mut c_void = (&raw mut owner).cast();
        let place = holders.enter(NativeId(7), owner, 0, 100);
        let mut read = Vec::new();
        holders.read(NativeId(8), 200, owner, 0, |owner| read.push(owner));
        holders.read(NativeId(7), 99, owner, 0, |owner| read.push(owner));
        assert!(read.is_empty(), "another thread, and an older tick");
        holders.read(NativeId(7), 200, owner, 5, |found| {
            let mut given_up = Vec::new();
            let interrupted = holders.take_interrupted(NativeId(7), |owner| given_up.push(owner));
            let (context, errno) = (owner, 5);
            assert_eq!(interrupted, Some(Interrupted { context, errno }));
            assert_eq!(given_up, [owner]);
            read.push(found);
        });
        assert_eq!(read, [owner]);
        let nothing = holders.take_interrupted(NativeId(7), |_| panic!("it doesn't read"));
        assert!(nothing.is_none());
        holders.leave(place);
        holders.read(NativeId(7), 300, owner, 0, |_| panic!("it doesn't run"));
    }

    #[test]
    fn a_pause_waits_for_the_handler_that_reads() {
        let holders = holders();
        let mut owner = 1u8;
        let context: *mut c_void = (&raw mut owner).cast();
        let _ = holders.enter(NativeId(7), context, 0, 100);
        let has_left = AtomicBool::new(false);
        std::thread::scope(|scope| {
            holders.read(NativeId(7), 200, context, 0, |_| {
                scope.spawn(|| {
                    holders.clear();
                    assert!(has_left.load(SeqCst), "it reads still");
                });
                while holders.place_of(NativeId(7)).is_some() {
                    std::thread::yield_now();
                }
                let interrupted =
                    holders.take_interrupted(NativeId(7), |_| has_left.store(true, SeqCst));
                assert!(interrupted.is_some(), "the place is cleared, but it reads");
            });
        });
        assert!(!holders.is_any_running());
        holders.read(NativeId(7), 300, context, 0, |_| panic!("it has no place"));
    }

    #[test]
    fn an_interruption_that_nobody_answers_ends_with_the_turn() {
        let holders = holders();
        let place = holders.enter(NativeId(7), ptr::null_mut(), 0, 1);
        assert!(holders.tick(true) && interrupted() == [7]);
        let interruption = &holders.places[0].interruption;
        interruption.sent(NativeId(7));
        assert!(interruption.is_of(NativeId(7)));
        holders.leave(place);
        assert!(!interruption.is_of(NativeId(7)));
    }
}

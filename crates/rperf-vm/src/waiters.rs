//! The threads that wait for the GVL, and how long all of them have waited: who has the GVL
//! meanwhile is to blame for it (docs/internals/accounting.md). Changed by the VM's events, on any
//! native thread; read by hooks, with the GVL, and by the signal handler.

use crate::ids::VmThread;
use crate::sync::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence, sleep, spin_loop, yield_now,
};
use std::array;
use std::time::Duration;

/// Room for threads that wait at the same time; a power of two. One place in four stays empty.
const PLACES: usize = 1024;
const MOST: u32 = (PLACES / 4 * 3) as u32;
/// No thread.
const NOBODY: usize = 0;

/// So often a reader tries to find the sums at rest: in a hook, and in the signal handler, which
/// may have interrupted the one who changes them.
const TRIES_IN_HOOK: u32 = 1_000;
const TRIES_IN_HANDLER: u32 = 3;
/// So often a writer looks whether another one is done, until it lets others run.
const SPINS: u32 = 100;
/// How long it sleeps now and then if that doesn't help.
const PAUSE: Duration = Duration::from_micros(50);

/// The waits for the GVL up to a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// For how long all have waited, in ns, from some moment on. It wraps.
    pub ns: u64,
    /// How many threads wait.
    pub threads: u32,
}

/// With *n* threads that wait since *t1* to *tn*, all have waited for *n* times *now*, less the sum
/// of *t1* to *tn*. Of those that wait no more, the sum of their waits is added. So two numbers tell
/// the time of all waits up to any moment; numbers wrap, as only differences mean something.
#[derive(Debug)]
#[repr(align(64))]
pub struct Waiters {
    /// Odd while the others change.
    version: AtomicU32,
    count: AtomicU32,
    /// What is added to the count times now.
    offset: AtomicU64,
    /// Up to which sum of all waits somebody had the GVL, or was waited for.
    held_up_to: AtomicU64,
    /// Waits in which nobody had it, in ns.
    hand_over_ns: AtomicU64,
    /// Waits for the GVLs of other Ractors that were taken for such, in ns.
    foreign_ns: AtomicU64,
    /// Who waits, and since when: a hash table with linear probing.
    places: [Place; PLACES],
}

/// A place for a thread that waits: in one cache line, because an event of the VM's seldom finds it in a cache.
#[derive(Debug)]
#[repr(align(16))]
struct Place {
    thread: AtomicUsize,
    since_ns: AtomicU64,
}

impl Place {
    fn of_nobody() -> Self {
        Self {
            thread: AtomicUsize::new(NOBODY),
            since_ns: AtomicU64::new(0),
        }
    }

    fn put(&self, thread: usize, since_ns: u64) {
        self.thread.store(thread, Relaxed);
        self.since_ns.store(since_ns, Relaxed);
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self {
            version: AtomicU32::new(0),
            count: AtomicU32::new(0),
            offset: AtomicU64::new(0),
            held_up_to: AtomicU64::new(0),
            hand_over_ns: AtomicU64::new(0),
            foreign_ns: AtomicU64::new(0),
            places: array::from_fn(|_| Place::of_nobody()),
        }
    }
}

impl Waiters {
    /// `thread` waits from `now` on, if it doesn't wait yet. If too many wait, it isn't counted.
    pub fn join(&self, thread: VmThread, now: u64) {
        self.change(|| {
            let count = self.count.load(Relaxed);
            let Err(free) = self.find(thread) else {
                return;
            };
            if count >= MOST {
                return;
            }
            self.places[free].put(thread.0, now);
            self.count.store(count + 1, Relaxed);
            self.add(0_u64.wrapping_sub(now));
        });
    }

    /// `thread` waits no more, from `now` on. Returns since when it was counted.
    pub fn leave(&self, thread: VmThread, now: u64) -> Option<u64> {
        self.change(|| {
            let place = self.find(thread).ok()?;
            let since = self.places[place].since_ns.load(Relaxed);
            self.empty(place);
            self.count.store(self.count.load(Relaxed) - 1, Relaxed);
            self.add(now);
            Some(since)
        })
    }

    /// Does what [`Waiters::leave`] does, for a thread of another Ractor.
    pub fn leave_foreign(&self, thread: VmThread, now: u64) {
        if let Some(since) = self.leave(thread, now) {
            self.foreign_ns
                .fetch_add(now.saturating_sub(since), Relaxed);
        }
    }

    /// Since when `thread` waits, if it is counted. With the GVL.
    pub fn since(&self, thread: VmThread) -> Option<u64> {
        self.change(|| {
            let place = self.find(thread).ok()?;
            Some(self.places[place].since_ns.load(Relaxed))
        })
    }

    /// Nobody waits, and the calling thread has the GVL. What was waited so far stays.
    pub fn clear(&self, now: u64) {
        let ns = self.change(|| {
            let count = u64::from(self.count.swap(0, Relaxed));
            self.add(count.wrapping_mul(now));
            for place in &self.places {
                place.thread.store(NOBODY, Relaxed);
            }
            self.offset.load(Relaxed)
        });
        self.held_up_to.store(ns, Relaxed);
    }

    /// The calling thread gives the GVL up, with so many ns of waits before.
    #[inline]
    pub fn note_free(&self, ns: u64) {
        self.held_up_to.store(ns, Relaxed);
    }

    /// The calling thread has got the GVL, with so many ns of waits before. Returns up to which sum of
    /// waits others had it, or nobody: a thread that became ready while the sum was read can make it
    /// less than before.
    #[inline]
    pub fn note_held(&self, ns: u64) -> u64 {
        let before = self.held_up_to.load(Relaxed);
        let passed = ns.wrapping_sub(before).cast_signed().max(0).unsigned_abs();
        let held = before.wrapping_add(passed);
        self.held_up_to.store(held, Relaxed);
        let hand_over = self.hand_over_ns.load(Relaxed);
        self.hand_over_ns.store(hand_over + passed, Relaxed);
        held
    }

    /// Up to which sum of waits somebody had the GVL, as far as it is known. With the GVL.
    pub fn held_up_to(&self) -> u64 {
        self.held_up_to.load(Relaxed)
    }

    /// Takes the waits for other GVLs that were counted, in ns. With the GVL.
    pub fn take_foreign(&self) -> u64 {
        self.foreign_ns.swap(0, Relaxed)
    }

    /// Takes the waits in which nobody had the GVL, in ns. With the GVL.
    pub fn take_hand_over(&self) -> u64 {
        self.hand_over_ns.swap(0, Relaxed)
    }

    /// The waits up to `now`; `None` if they can't be read at the moment. With the GVL.
    pub fn up_to(&self, now: u64) -> Option<Waits> {
        self.read(now, TRIES_IN_HOOK)
    }

    /// [`Waiters::up_to`] in the signal handler.
    pub fn up_to_in_handler(&self, now: u64) -> Option<Waits> {
        self.read(now, TRIES_IN_HANDLER)
    }

    #[inline]
    fn read(&self, now: u64, tries: u32) -> Option<Waits> {
        for _ in 0..tries {
            let version = self.version.load(Acquire);
            let threads = self.count.load(Relaxed);
            let offset = self.offset.load(Relaxed);
            fence(Acquire);
            if version.is_multiple_of(2) && self.version.load(Relaxed) == version {
                let of_waiting = u64::from(threads).wrapping_mul(now);
                let ns = of_waiting.wrapping_add(offset);
                return Some(Waits { ns, threads });
            }
            spin_loop();
        }
        None
    }

    /// Changes the sums, one at a time. The VM's events come under the lock of its scheduler, so
    /// there is hardly ever another one.
    #[inline]
    fn change<R>(&self, change: impl FnOnce() -> R) -> R {
        let mut spins = 0_u32;
        let version = loop {
            let version = self.version.load(Relaxed) & !1;
            let taken = self
                .version
                .compare_exchange_weak(version, version + 1, Acquire, Relaxed);
            if taken.is_ok() {
                break version;
            }
            spins += 1;
            // The other one is done soon; but it may wait for the CPU of a thread that the system prefers.
            if spins.is_multiple_of(100 * SPINS) {
                sleep(PAUSE);
            } else if spins.is_multiple_of(SPINS) {
                yield_now();
            }
            spin_loop();
        };
        // What changes is seen after the odd version.
        fence(Release);
        let result = change();
        self.version.store(version.wrapping_add(2), Release);
        result
    }

    #[inline]
    fn add(&self, ns: u64) {
        let offset = self.offset.load(Relaxed);
        self.offset.store(offset.wrapping_add(ns), Relaxed);
    }

    /// The place of `thread`; or the free one where it belongs.
    #[inline]
    fn find(&self, thread: VmThread) -> Result<usize, usize> {
        let mut place = home(thread.0);
        loop {
            match self.places[place].thread.load(Relaxed) {
                NOBODY => return Err(place),
                found if found == thread.0 => return Ok(place),
                _ => place = (place + 1) % PLACES,
            }
        }
    }

    /// Empties a place: whoever was put behind it for want of room moves up.
    fn empty(&self, mut hole: usize) {
        let mut place = hole;
        loop {
            place = (place + 1) % PLACES;
            let thread = self.places[place].thread.load(Relaxed);
            if thread == NOBODY {
                break;
            }
            let from_home = |it: usize| it.wrapping_sub(home(thread)) % PLACES;
            if from_home(hole) < from_home(place) {
                self.places[hole].put(thread, self.places[place].since_ns.load(Relaxed));
                hole = place;
            }
        }
        self.places[hole].thread.store(NOBODY, Relaxed);
    }
}

/// The place where a thread is looked for first.
#[inline]
fn home(thread: usize) -> usize {
    // Objects' addresses are multiples of 40 or more.
    let hash = (thread / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
    hash >> (usize::BITS - PLACES.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::thread;

    fn waits(ns: u64, threads: u32) -> Option<Waits> {
        Some(Waits { ns, threads })
    }

    #[test]
    fn waits_are_added_up_to_any_moment() {
        let waiters = Waiters::default();
        waiters.join(VmThread(8), 100);
        assert_eq!(waiters.up_to(130), waits(30, 1));
        waiters.join(VmThread(16), 120);
        waiters.join(VmThread(16), 125);
        assert_eq!(waiters.up_to(130), waits(40, 2));
        assert_eq!(waiters.since(VmThread(16)), Some(120));
        assert_eq!(waiters.leave(VmThread(8), 140), Some(100));
        assert_eq!(waiters.leave(VmThread(8), 141), None);
        assert_eq!(waiters.up_to(150), waits(40 + 30, 1));
        waiters.clear(160);
        assert_eq!(waiters.up_to(1_000), waits(80, 0));
    }

    #[test]
    fn waits_in_which_nobody_has_the_gvl_are_taken_once() {
        let waiters = Waiters::default();
        waiters.join(VmThread(8), 100);
        waiters.join(VmThread(16), 100);
        // Somebody has it up to 110, nobody up to 125.
        waiters.note_free(20);
        waiters.leave(VmThread(8), 125);
        assert_eq!(waiters.note_held(50), 50);
        assert_eq!(waiters.note_held(45), 50, "it doesn't go back");
        assert_eq!(waiters.take_hand_over(), 30);
        assert_eq!(waiters.take_hand_over(), 0);
        // What passes between two sections isn't anybody's.
        waiters.clear(1_000);
        waiters.note_held(waiters.up_to(1_000).expect("nobody writes").ns);
        assert_eq!(waiters.take_hand_over(), 0);
    }

    #[test]
    fn waits_of_other_ractors_are_taken_back() {
        let waiters = Waiters::default();
        waiters.join(VmThread(8), 100);
        waiters.leave_foreign(VmThread(8), 130);
        waiters.leave_foreign(VmThread(16), 130);
        assert_eq!((waiters.take_foreign(), waiters.take_foreign()), (30, 0));
    }

    #[test]
    fn more_than_there_is_room_for_are_not_counted() {
        let waiters = Waiters::default();
        let threads = || (1..=2 * PLACES).map(|number| VmThread(number * 40));
        threads().for_each(|thread| waiters.join(thread, 0));
        assert_eq!(waiters.up_to(0), waits(0, MOST));
        let left = threads()
            .filter(|&thread| waiters.leave(thread, 1).is_some())
            .count();
        assert_eq!(left as u32, MOST);
        assert_eq!(waiters.up_to(5), waits(u64::from(MOST), 0));
    }

    #[test]
    fn a_writer_that_was_interrupted_is_not_waited_for() {
        let waiters = Waiters::default();
        waiters.change(|| {
            assert_eq!(waiters.up_to_in_handler(5), None);
            assert_eq!(waiters.up_to(5), None);
        });
        assert_eq!(waiters.up_to_in_handler(5), waits(0, 0));
    }

    #[test]
    fn readers_see_whole_changes_only() {
        const TURNS: u64 = 100_000;
        let waiters = Waiters::default();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 1..=TURNS {
                    // Each wait takes one ns.
                    waiters.join(VmThread(40), turn);
                    waiters.leave(VmThread(40), turn + 1);
                }
                is_over.store(true, SeqCst);
            });
            while !is_over.load(SeqCst) {
                // Up to the moment 0, one that waits since a turn counts for so much less.
                match waiters.up_to(0) {
                    Some(Waits { ns, threads: 0 }) => assert!(ns <= TURNS),
                    Some(Waits { ns, threads }) => {
                        assert_eq!(
                            (threads, ns),
                            (1, u64::MAX),
                            "turn - 1 waits, less the turn"
                        );
                    }
                    None => {}
                }
            }
        });
        assert_eq!(waiters.up_to(0), waits(TURNS, 0));
    }

    /// What the VM tells of a thread, in whatever order: also that it is ready twice, or runs without having been ready.
    #[derive(Debug, Clone, Copy)]
    enum Event {
        Ready,
        Resumed,
        ResumedElsewhere,
        Cleared,
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            40 => Just(Event::Ready),
            40 => Just(Event::Resumed),
            10 => Just(Event::ResumedElsewhere),
            1 => Just(Event::Cleared),
        ]
    }

    proptest! {
        #[test]
        fn the_sum_is_that_of_all_waits_and_nobody_waits_at_the_end(
            events in prop::collection::vec((event(), 1_usize..60, 0_u64..50), 1..400)
        ) {
            let waiters = Waiters::default();
            let mut waiting = BTreeMap::new();
            let (mut now, mut sum, mut foreign) = (1_u64 << 60, 0, 0);
            // They have few homes: most of them collide.
            let id = |thread: usize| VmThread(thread * PLACES * 8 + thread % 7 * 8);
            for (event, thread, passed) in events {
                now += passed;
                let thread = id(thread);
                match event {
                    Event::Ready => {
                        waiters.join(thread, now);
                        waiting.entry(thread.0).or_insert(now);
                    }
                    Event::Resumed => {
                        let since = waiting.remove(&thread.0);
                        prop_assert_eq!(waiters.leave(thread, now), since);
                        sum += since.map_or(0, |it| now - it);
                    }
                    Event::ResumedElsewhere => {
                        waiters.leave_foreign(thread, now);
                        let waited = waiting.remove(&thread.0).map_or(0, |it| now - it);
                        sum += waited;
                        foreign += waited;
                    }
                    Event::Cleared => {
                        waiters.clear(now);
                        sum += waiting.values().map(|since| now - since).sum::<u64>();
                        waiting.clear();
                    }
                }
                let of_waiting: u64 = waiting.values().map(|since| now + 9 - since).sum();
                let expected = waits(sum + of_waiting, waiting.len() as u32);
                prop_assert_eq!(waiters.up_to(now + 9), expected);
            }
            for thread in (1..60).map(id) {
                let since = waiting.remove(&thread.0);
                prop_assert_eq!(waiters.leave(thread, now), since);
                sum += since.map_or(0, |it| now - it);
            }
            prop_assert_eq!(waiters.up_to(now + 9), waits(sum, 0));
            prop_assert_eq!(waiters.take_foreign(), foreign);
            prop_assert!(waiters.places.iter().all(|it| it.thread.load(Relaxed) == NOBODY));
        }
    }
}

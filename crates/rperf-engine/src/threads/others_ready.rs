//! READY where the thread's state isn't at hand: the event came on another native
//! thread, or before the thread's first turn. Without the GVL the thread's object
//! can't be touched, which would lead to the state (see [`crate::vm::state::native_thread`]).

use rb_sys::VALUE;
use std::array;
use std::sync::atomic::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Threads that can be noted at the same time, if no two share a place.
const PLACES: usize = 256;

/// When threads became ready. From any thread, without locks. Two threads that share
/// a place may lose a time: then the wait counts as blocked.
pub struct OthersReady([Place; PLACES]);

#[derive(Default)]
struct Place {
    thread: AtomicUsize,
    since_ns: AtomicU64,
}

impl Default for OthersReady {
    fn default() -> Self {
        Self(array::from_fn(|_| Place::default()))
    }
}

impl OthersReady {
    /// `thread` has been ready since `now`, if not for longer.
    pub fn note(&self, thread: VALUE, now: u64) {
        let place = self.place(thread);
        if place.thread.swap(0, Acquire) != thread as usize {
            place.since_ns.store(now, Relaxed);
        }
        place.thread.store(thread as usize, Release);
    }

    /// Since when `thread` has been ready; 0 if nothing is noted.
    #[inline]
    pub fn since(&self, thread: VALUE) -> u64 {
        let place = self.place(thread);
        if place.thread.load(Acquire) == thread as usize {
            place.since_ns.load(Relaxed)
        } else {
            0
        }
    }

    /// `thread` is ready no more.
    #[inline]
    pub fn forget(&self, thread: VALUE) {
        let place = self.place(thread);
        if place.thread.load(Relaxed) == thread as usize {
            place.thread.store(0, Relaxed);
        }
    }

    #[inline]
    fn place(&self, thread: VALUE) -> &Place {
        // Objects' addresses are multiples of 40 or more.
        let hash = (thread as usize / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
        &self.0[(hash >> (usize::BITS - 8)) % PLACES]
    }
}

//! READY where the thread's state isn't at hand: the event came on another native thread, or
//! before the thread's first turn. Without the GVL the thread's object can't be touched, which
//! would lead to the state.

use crate::ids::VmThread;
use crate::sync::{
    AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::array;

/// Threads that can be noted at the same time, if no two share a cell.
const CELLS: usize = 256;

/// When threads became ready. From any thread, without locks. Two threads that share
/// a cell may lose a time: then the wait counts as blocked.
#[derive(Debug)]
pub struct OthersReady([Cell; CELLS]);

#[derive(Debug, Default)]
struct Cell {
    thread: AtomicUsize,
    since_ns: AtomicU64,
}

impl Default for OthersReady {
    fn default() -> Self {
        Self(array::from_fn(|_| Cell::default()))
    }
}

impl OthersReady {
    /// `thread` has been ready since `now`, if not for longer.
    #[inline]
    pub fn note(&self, thread: VmThread, now: u64) {
        let cell = self.cell(thread);
        if cell.thread.swap(0, Acquire) != thread.0 {
            cell.since_ns.store(now, Relaxed);
        }
        cell.thread.store(thread.0, Release);
    }

    /// Since when `thread` has been ready; 0 if nothing is noted.
    #[inline]
    pub fn since(&self, thread: VmThread) -> u64 {
        let cell = self.cell(thread);
        if cell.thread.load(Acquire) == thread.0 {
            cell.since_ns.load(Relaxed)
        } else {
            0
        }
    }

    /// `thread` is ready no more.
    #[inline]
    pub fn forget(&self, thread: VmThread) {
        let cell = self.cell(thread);
        if cell.thread.load(Relaxed) == thread.0 {
            cell.thread.store(0, Relaxed);
        }
    }

    /// Whether these threads share a cell.
    pub fn share_cell(one: VmThread, other: VmThread) -> bool {
        index(one) == index(other)
    }

    #[inline]
    fn cell(&self, thread: VmThread) -> &Cell {
        &self.0[index(thread)]
    }
}

/// The cell of a thread.
#[inline]
fn index(thread: VmThread) -> usize {
    // Objects' addresses are multiples of 40 or more.
    let hash = (thread.0 / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as usize);
    (hash >> (usize::BITS - 8)) % CELLS
}

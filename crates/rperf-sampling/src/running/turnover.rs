//! Threads that have come and gone since the holder of the GVL took that in last. On any thread, without
//! the GVL.

use crate::threads::{NewList, ThreadState};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Ended threads that are left until they are merged together.
const ENDED_BATCH: usize = 32;

/// The threads that [`GvlState::threads`](super::GvlState::threads) lacks, and those that it has though
/// they have ended.
#[derive(Debug, Default)]
pub struct Turnover {
    /// Threads seen for the first time.
    pub new: NewList<ThreadState>,
    /// How many threads have ended and wait to be merged.
    ended: AtomicUsize,
}

impl Turnover {
    /// A thread has ended.
    pub(super) fn note_end(&self) {
        self.ended.fetch_add(1, Relaxed);
    }

    /// So many of those that have ended are merged.
    pub(super) fn note_merged(&self, threads: usize) {
        self.ended.fetch_sub(threads, Relaxed);
    }

    /// Whether so many have ended that they are worth being merged.
    #[inline]
    pub(super) fn is_batch(&self) -> bool {
        self.ended.load(Relaxed) >= ENDED_BATCH
    }
}

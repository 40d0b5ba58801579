//! How far a session's sections are. Changed with the GVL, but for their end after a panic; asked for by hooks without
//! it, too.

use rperf_vm::clock;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst,
};

/// In ns; far longer than a hook takes.
const JUST_NOW: u64 = 100_000_000;

/// The sections of a session: time counts while one is open, and nothing pauses the session. A session
/// that isn't deferred is one section that nobody ends.
#[derive(Debug, Default)]
pub struct Sections {
    count: AtomicU32,
    /// Pauses that last for a block.
    pauses: AtomicU32,
    /// A pause that lasts until somebody ends it.
    is_held: AtomicBool,
    /// Time counts, and hooks are there.
    are_open: AtomicBool,
    /// When the last one ended.
    closed_ns: AtomicU64,
    /// After a panic, and while stopping: time doesn't count any more, whatever is open.
    is_over: AtomicBool,
}

impl Sections {
    /// Whether time counts.
    #[inline]
    pub fn are_open(&self) -> bool {
        self.are_open.load(Acquire)
    }

    /// Whether time counts, and callbacks do something.
    #[inline]
    pub(super) fn are_counting(&self) -> bool {
        self.are_open() && !self.is_over()
    }

    /// Whether callbacks do nothing any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// Has callbacks do nothing any more. Returns whether they did something before.
    pub(super) fn end(&self) -> bool {
        !self.is_over.swap(true, SeqCst)
    }

    /// Time counts from now on: hooks are there.
    pub fn open(&self) {
        self.are_open.store(true, SeqCst);
    }

    /// Time no longer counts.
    pub fn close(&self) {
        self.are_open.store(false, SeqCst);
    }

    /// The hooks have been removed at `now`.
    pub fn note_end(&self, now: u64) {
        self.closed_ns.store(now, Relaxed);
    }

    /// Whether hooks may still be at work that have been removed by now.
    pub fn ended_just_now(&self) -> bool {
        let since = clock::monotonic_ns().saturating_sub(self.closed_ns.load(Relaxed));
        !self.are_open() && since < JUST_NOW
    }

    /// Whether time is to count.
    pub fn are_wanted(&self) -> bool {
        !self.is_none() && !self.is_paused()
    }

    /// Whether something pauses the session.
    pub fn is_paused(&self) -> bool {
        self.is_held.load(Relaxed) || self.pauses.load(Relaxed) > 0
    }

    /// A pause begins that lasts for a block.
    pub fn add_pause(&self) {
        self.pauses.fetch_add(1, Relaxed);
    }

    /// A pause that lasts for a block ends.
    pub fn remove_pause(&self) {
        self.pauses.fetch_sub(1, Relaxed);
    }

    /// A pause begins that lasts until somebody ends it, or ends. Returns whether that is news.
    pub fn hold(&self, is_held: bool) -> bool {
        self.is_held.swap(is_held, Relaxed) != is_held
    }

    /// Whether none has begun that hasn't ended.
    pub fn is_none(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// Whether one has begun that hasn't ended, and no more.
    pub fn is_last(&self) -> bool {
        self.count.load(Relaxed) == 1
    }

    /// A section begins.
    pub fn add(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    /// A section ends. Returns whether it was the last.
    pub fn remove(&self) -> bool {
        self.count.fetch_sub(1, Relaxed) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_begins_and_the_last_ends() {
        let sections = Sections::default();
        assert!(sections.is_none() && !sections.are_open());
        sections.add();
        sections.add();
        assert!(!sections.is_none());
        assert!(!sections.remove());
        assert!(sections.remove() && sections.is_none());
    }

    #[test]
    fn hooks_may_be_at_work_for_a_moment() {
        let sections = Sections::default();
        sections.open();
        assert!(sections.are_open() && !sections.ended_just_now());
        sections.close();
        sections.note_end(clock::monotonic_ns());
        assert!(sections.ended_just_now());
        sections.note_end(1);
        assert!(!sections.ended_just_now(), "long ago");
    }
}

//! The threads of a traced session, and which of them has the GVL. At events, under the GVL.

use crate::tree::thread::{CountedThread, TracedThread};
use rperf_model::State;

/// Threads at most; more share the last one's numbers.
const MAX_THREADS: usize = 1 << 14;

/// A thread of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadNumber(pub u32);

impl ThreadNumber {
    /// The number of the last thread, which may be that of several.
    pub(crate) const LAST: Self = Self(MAX_THREADS as u32 - 1);

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// All threads, by their numbers, and what is true of the one that runs only. The number of that
/// one is a thread's as soon as one has been announced.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    all: Vec<TracedThread>,
    running: usize,
    /// The state of a collection that the running thread is at.
    pub(crate) collecting: Option<State>,
}

impl Threads {
    /// Whether one more shares the number of the last.
    pub(crate) fn is_full(&self) -> bool {
        self.all.len() >= MAX_THREADS
    }

    /// Adds a thread, for which there is room.
    pub(crate) fn add(&mut self, thread: TracedThread) -> ThreadNumber {
        self.all.push(thread);
        ThreadNumber(self.all.len() as u32 - 1)
    }

    /// From now on this one runs.
    pub(crate) fn run(&mut self, thread: ThreadNumber) {
        self.running = thread.place();
    }

    /// The number of the one that runs.
    #[inline]
    pub(crate) fn running_number(&self) -> ThreadNumber {
        ThreadNumber(self.running as u32)
    }

    /// The one that runs, if there is any.
    #[inline]
    pub(crate) fn get_running(&self) -> Option<&TracedThread> {
        self.all.get(self.running)
    }

    /// The one that runs, if there is any.
    #[inline]
    pub(crate) fn get_running_mut(&mut self) -> Option<&mut TracedThread> {
        self.all.get_mut(self.running)
    }

    /// The one with this number, if there is one.
    #[inline]
    pub(crate) fn get(&self, thread: ThreadNumber) -> Option<&TracedThread> {
        self.all.get(thread.place())
    }

    /// The one with this number, if there is one.
    #[inline]
    pub(crate) fn get_mut(&mut self, thread: ThreadNumber) -> Option<&mut TracedThread> {
        self.all.get_mut(thread.place())
    }

    /// The own fiber of the one that runs, which comes back to it at this `depth`, if that is for the
    /// first time: other fibers begin at depth 1, if there were none before the session.
    #[inline]
    pub(crate) fn take_own_fiber(&mut self, depth: u32) -> Option<usize> {
        let thread = self.get_running_mut()?;
        thread.own_fiber.take_if(|_| depth > 1)
    }

    /// All of them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TracedThread> {
        self.all.iter_mut()
    }

    /// All of them, with their numbers.
    pub(crate) fn numbered_mut(
        &mut self,
    ) -> impl Iterator<Item = (ThreadNumber, &mut TracedThread)> {
        let all = self.all.iter_mut().enumerate();
        all.map(|(number, thread)| (ThreadNumber(number as u32), thread))
    }

    /// What has been counted for each.
    pub(crate) fn counted(&self) -> Vec<CountedThread> {
        self.all.iter().map(TracedThread::counted).collect()
    }

    /// What was counted for each, of which nothing is left here.
    pub(crate) fn take_counted(&mut self) -> Vec<CountedThread> {
        let all = std::mem::take(&mut self.all).into_iter();
        all.map(TracedThread::into_counted).collect()
    }

    /// Bytes held by what has been counted.
    pub(crate) fn memory(&self) -> usize {
        self.all.iter().map(TracedThread::memory).sum()
    }
}

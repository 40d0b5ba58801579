//! What is recorded of one thread of another Ractor. Its hooks and its signal handler run on the
//! thread, with its Ractor's GVL; the main Ractor and the worker come from other threads. So each
//! takes the recorder for the moment of its work, and none of the first two waits for it.

use super::merged::Merged;
use super::missed_events::{MissedEvent, MissedEvents};
use super::thread_recording::{ThreadRecording, Wake};
use crate::threads::ThreadEnd;
use rperf_vm::{FrameWord, GcEvent, GcPhase, GcWork, NativeId, VmFrames, VmName, VmThread, clock};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
    Ordering::SeqCst,
};

/// In place of a place: it doesn't run.
const NOWHERE: usize = usize::MAX;

/// In place of a place: it runs, and has found none.
const WITHOUT_PLACE: usize = usize::MAX - 1;

/// What a thread's slot in the VM leads to, for as long as it lives.
#[derive(Debug, Default)]
pub struct ThreadSlot {
    /// In the running session; null if it has none yet.
    pub recorder: AtomicPtr<Recorder>,
}

/// The recorder of a thread.
#[derive(Debug)]
pub struct Recorder {
    /// The thread; only compared.
    pub thread: VmThread,
    /// Its end.
    pub end: ThreadEnd,
    /// The number of its Ractor; 0 if not known.
    ractor: u32,
    /// What leads here from the thread. It lives as long as the thread or this, whichever lives
    /// longer.
    pub slot: &'static ThreadSlot,
    is_busy: AtomicBool,
    /// The handler has taken it. Written on the thread only.
    is_with_handler: AtomicBool,
    /// Where it runs, in [`OtherHolders`](crate::timer::other_holders::OtherHolders).
    place: AtomicUsize,
    last_place: AtomicUsize,
    missed: MissedEvents,
    recording: UnsafeCell<ThreadRecording>,
}

// SAFETY: only who has taken the recorder gets at `recording`, by a flag that is set with Acquire
// and given back with Release; the rest is atomics.
unsafe impl Sync for Recorder {}

/// A recorder that was taken.
#[derive(Debug)]
pub struct Taken<'a>(&'a Recorder);

impl Deref for Taken<'_> {
    type Target = ThreadRecording;

    fn deref(&self) -> &ThreadRecording {
        // SAFETY: the flag makes this the only one.
        unsafe { &*self.0.recording.get() }
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut ThreadRecording {
        // SAFETY: as for `deref`; `&mut self` excludes other references from it.
        unsafe { &mut *self.0.recording.get() }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.is_busy.store(false, Release);
    }
}

impl Recorder {
    /// The recorder of `thread`, of which nothing is known yet.
    pub fn new(
        thread: VmThread,
        slot: &'static ThreadSlot,
        ractor: u32,
        recording: ThreadRecording,
    ) -> Box<Self> {
        Box::new(Recorder {
            thread,
            end: ThreadEnd::default(),
            ractor,
            slot,
            is_busy: AtomicBool::new(false),
            is_with_handler: AtomicBool::new(false),
            place: AtomicUsize::new(NOWHERE),
            last_place: AtomicUsize::new(0),
            missed: MissedEvents::default(),
            recording: UnsafeCell::new(recording),
        })
    }

    /// Takes the recorder, unless somebody else has it.
    #[inline]
    fn try_take(&self) -> Option<Taken<'_>> {
        let is_taken = self.is_busy.compare_exchange(false, true, Acquire, Relaxed);
        // Made only then: dropped, it would give the recorder back.
        is_taken.is_ok().then(|| Taken(self))
    }

    /// Takes the recorder as soon as it is free: its thread has it for microseconds. Not on that
    /// thread.
    pub fn take(&self) -> Taken<'_> {
        loop {
            match self.try_take() {
                Some(taken) => return taken,
                None => std::thread::yield_now(),
            }
        }
    }

    /// The signal handler has faulted: it gives the recorder back, if it had taken it.
    /// Async-signal-safe.
    pub fn give_up(&self) {
        if self.is_with_handler.swap(false, SeqCst) {
            self.is_busy.store(false, Release);
        }
    }

    /// Whether somebody has it.
    #[cfg(test)]
    pub fn is_taken(&self) -> bool {
        self.is_busy.load(Acquire)
    }

    /// The thread doesn't run any more. Returns whether it did, and its place, if it had one.
    pub fn leave_place(&self) -> Option<Option<usize>> {
        match self.place.swap(NOWHERE, Relaxed) {
            NOWHERE => None,
            WITHOUT_PLACE => Some(None),
            place => Some(Some(place)),
        }
    }

    /// The thread runs, in this place if there was one.
    pub fn set_place(&self, place: Option<usize>) {
        self.place.store(place.unwrap_or(WITHOUT_PLACE), Relaxed);
        self.last_place.store(place.unwrap_or(0), Relaxed);
    }

    /// Where it ran last.
    pub fn last_place(&self) -> usize {
        self.last_place.load(Relaxed)
    }

    /// The thread, which is calling, has got its Ractor's GVL. Since `began_ns` time counts.
    /// `has_moved`: it ran on another native thread before, or another thread on this one.
    pub fn resumed(&self, vm: &impl VmFrames, wake: Wake, began_ns: u64, has_moved: bool) {
        let Some(mut taken) = self.try_take() else {
            self.missed.push(MissedEvent::Resumed(wake.now, wake.ready));
            return;
        };
        taken.catch_up(&self.missed, began_ns);
        taken.resumed_here(vm, wake, began_ns, has_moved);
    }

    /// The thread, which is calling and has this `name`, is about to give its Ractor's GVL up.
    pub fn suspended(&self, vm: &impl VmFrames, name: &impl VmName, began_ns: u64) {
        let Some(mut taken) = self.try_take() else {
            self.missed
                .push(MissedEvent::Suspended(clock::monotonic_ns()));
            return;
        };
        taken.catch_up(&self.missed, began_ns);
        taken.note_name(name);
        taken.suspended_here(vm, began_ns);
    }

    /// The thread, which is calling, collects garbage; `tick` is the last one. Returns the piece of work
    /// that has ended, if one has.
    pub fn collecting(
        &self,
        vm: &impl VmFrames,
        event: GcEvent,
        tick: u64,
        phase: GcPhase,
        began_ns: u64,
    ) -> Option<GcWork> {
        let mut taken = self.try_take()?;
        let (now, work) = taken.collecting(event, tick, phase)?;
        taken.catch_up(&self.missed, began_ns);
        taken.collected(vm, now, work, tick, began_ns);
        Some(work)
    }

    /// The handler: takes the stack of the thread, which is calling, on native thread `native_id`,
    /// for the tick at `tick_ns`. If it faults it doesn't return, and [`Recorder::give_up`] must be
    /// called.
    ///
    /// # Safety
    /// The conditions are those of [`take_stack`](super::take_stack).
    pub unsafe fn take_stack(
        &self,
        vm: &impl VmFrames,
        native_id: NativeId,
        tick_ns: u64,
        is_stopped: impl FnOnce() -> bool,
    ) {
        let Some(mut taken) = self.try_take() else {
            return;
        };
        // The VM may fault as it is asked, too.
        self.is_with_handler.store(true, SeqCst);
        // Events that nobody has seen yet come before the tick. Only now that the recorder is taken
        // may the VM be asked: a collector that the answer doesn't show yet waits for the recorder.
        if self.missed.are_none() && !is_stopped() {
            // SAFETY: by this function's contract.
            unsafe { taken.take_stack(vm, native_id, tick_ns) };
        }
        self.is_with_handler.store(false, SeqCst);
    }

    /// Makes samples of what the log has. Returns whether it was filling. On the worker.
    pub fn empty_log(&self, began_ns: u64) -> bool {
        self.try_take().is_some_and(|mut taken| {
            let was_filling = taken.is_filling();
            taken.catch_up(&self.missed, began_ns);
            was_filling
        })
    }

    /// Brings the thread up to `now`, and moves what is recorded of it to `merged`.
    pub fn move_to(&self, merged: &mut Merged, now: u64, ready: u64, began_ns: u64) {
        let mut taken = self.take();
        taken.catch_up(&self.missed, began_ns);
        let end_cpu_ns = self.end.cpu_ns();
        taken.bring_up(now, ready, end_cpu_ns);
        taken.move_to(merged, self.ractor);
        if end_cpu_ns.is_some() {
            taken.end_name(merged);
        }
    }

    /// Moves what is recorded of the thread, which goes on, to `merged`, if its call tree has become
    /// large. On the worker.
    pub fn move_large_tree(&self, merged: &mut Merged, began_ns: u64) {
        if let Some(mut taken) = self.try_take() {
            taken.catch_up(&self.missed, began_ns);
            taken.move_large_tree(merged, self.ractor);
        }
    }

    /// No time counts from `now` on, until the thread's next event in a section.
    pub fn pause(&self, now: u64, ready: u64, began_ns: u64) {
        let mut taken = self.take();
        taken.catch_up(&self.missed, began_ns);
        taken.pause(now, ready);
        self.place.store(NOWHERE, Relaxed);
    }

    /// Hands out all words that may be objects, for the garbage collector.
    pub fn each_root(&self, mark: impl FnMut(FrameWord)) {
        self.take().each_root(mark);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of::<Self>() + self.take().memory()
    }
}

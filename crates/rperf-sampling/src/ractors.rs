//! Threads of other Ractors than the main one. Each Ractor has a GVL of its own, so their hooks
//! and handlers run at the same time: each thread has a [`Recorder`], and the worker and the main
//! Ractor gather what they hold. docs/internals/ractors.md has the reasons.

mod config;
mod hand_over;
mod merged;
mod missed_events;
mod new_recordings;
mod recorder;
mod thread_recording;
mod visits;

use crate::threads::{NewList, native};
use crate::timer::other_holders::OtherHolders;
use crate::timer::pace::Pace;
use crate::timer::sources::Source;
pub use config::RecorderConfig;
pub use hand_over::Part;
use merged::Merged;
pub use merged::move_samples;
use new_recordings::NewRecordings;
pub use recorder::{Recorder, ThreadSlot};
use rperf_vm::{
    FrameLayout, FrameWord, GcEvent, GcPhase, GcWork, NativeId, OthersReady, VmFrames, VmName,
    VmThread, clock,
};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use thread_recording::Wake;
use visits::Visits;

/// Recorders that are kept from one section to the next. The ends of threads in between go
/// unseen.
const KEPT_IN_PAUSE: usize = 1024;

thread_local! {
    /// The thread of another Ractor that last ran on this native thread.
    static LAST_HERE: Cell<LastHere> = const { Cell::new(NOBODY) };
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct LastHere {
    /// When time began to count: since then all turns on this native thread were seen.
    began_ns: u64,
    thread: VmThread,
    recorder: *const Recorder,
}

const NOBODY: LastHere = LastHere {
    began_ns: 0,
    thread: VmThread(0),
    recorder: ptr::null(),
};

/// The threads of other Ractors in a session.
#[derive(Debug)]
pub struct OtherRactors {
    new_recordings: NewRecordings,
    /// Since when time counts.
    began_ns: AtomicU64,
    /// Recorders of threads seen for the first time.
    new: NewList<Recorder>,
    /// For the worker and the main Ractor, and for the garbage collector: none of them runs Ruby
    /// code, or waits, while it has this.
    kept: Mutex<Kept>,
    visits: Visits,
}

#[derive(Debug)]
struct Kept {
    #[allow(clippy::vec_box, reason = "slots and places hold their addresses")]
    recorders: Vec<Box<Recorder>>,
    /// What was moved out of recorders: because the threads have ended, for a snapshot, or because
    /// there was much of it.
    merged: Merged,
}

/// The calling thread, which has its Ractor's GVL.
#[derive(Debug, Clone, Copy)]
pub struct OtherThread {
    /// The thread.
    pub thread: VmThread,
    /// What its slot leads to.
    pub slot: &'static ThreadSlot,
    /// The number of its Ractor; 0 if not known.
    pub ractor: u32,
}

impl OtherRactors {
    /// None is known.
    pub fn new(config: RecorderConfig, pace: Arc<Pace>, seed: u64) -> Self {
        Self {
            new_recordings: NewRecordings::new(config, pace, seed),
            began_ns: AtomicU64::new(0),
            new: NewList::default(),
            kept: Mutex::new(Kept {
                recorders: Vec::new(),
                merged: Merged::new(&config),
            }),
            visits: Visits::new(config.interval),
        }
    }

    /// Before the first hook: whether stacks have lines, and where the VM has its data, if that is
    /// known.
    pub fn set_lines(&self, with_lines: bool, layout: Option<FrameLayout>) {
        self.new_recordings.set_lines(with_lines, layout);
    }

    /// The worker has begun.
    pub fn set_worker(&self, source: Arc<dyn Source>, worker: Thread) {
        self.visits.set_worker(source, worker);
    }

    /// The number for a thread that was not seen before, of any Ractor.
    pub fn next_seq(&self) -> u32 {
        self.new_recordings.next_seq()
    }

    /// Time counts from `now` on.
    pub fn begin(&self, now: u64) {
        self.began_ns.store(now, Relaxed);
    }

    /// `thread` has got its Ractor's GVL; it was ready since `ready`, or 0.
    pub fn resumed(
        &self,
        holders: &OtherHolders,
        vm: &impl VmFrames,
        thread: OtherThread,
        ready: u64,
    ) {
        let now = clock::monotonic_ns();
        let recorder = self.recorder(thread);
        let here = self.here(recorder);
        let has_moved = LAST_HERE.replace(here) != here;
        if let Some(place) = recorder.leave_place() {
            // Its event was lost.
            holders.leave(place);
        }
        recorder.resumed(
            vm,
            Wake { ready, now },
            self.began_ns.load(Relaxed),
            has_moved,
        );
        let owner: *mut c_void = ptr::from_ref(recorder).cast_mut().cast();
        let place = holders.enter(native::id(), owner, recorder.last_place(), now);
        recorder.set_place(place);
        self.visits.ask();
    }

    /// Ends the rest of the timer; only for the caller to whom
    /// [`Ticks::arm_for_other`](crate::timer::ticks::Ticks::arm_for_other) said so.
    pub fn arm(&self) {
        self.visits.arm_timer();
    }

    /// `thread`, which has this `name`, is about to give its Ractor's GVL up.
    pub fn suspended(
        &self,
        holders: &OtherHolders,
        vm: &impl VmFrames,
        thread: OtherThread,
        name: &impl VmName,
    ) {
        let recorder = self.recorder(thread);
        if let Some(place) = recorder.leave_place() {
            holders.leave(place);
        }
        LAST_HERE.set(self.here(recorder));
        recorder.suspended(vm, name, self.began_ns.load(Relaxed));
    }

    /// `thread` collects garbage; `tick` is the last one. Returns the piece of work that has ended, if
    /// one has.
    pub fn collecting(
        &self,
        vm: &impl VmFrames,
        thread: OtherThread,
        event: GcEvent,
        tick: u64,
        phase: GcPhase,
    ) -> Option<GcWork> {
        let began_ns = self.began_ns.load(Relaxed);
        let recorder = self.recorder(thread);
        LAST_HERE.set(self.here(recorder));
        recorder.collecting(vm, event, tick, phase, began_ns)
    }

    /// `thread`, the calling one, has ended, without its Ractor's GVL. Its object isn't looked at.
    pub fn exited(&self, holders: &OtherHolders, thread: VmThread) {
        let here = LAST_HERE.get();
        if here.thread != thread || here.began_ns != self.began_ns.load(Relaxed) {
            return;
        }
        LAST_HERE.set(NOBODY);
        // SAFETY: while time counts the recorder lives until its thread's end is noted, which is
        // done here.
        if let Some(recorder) = unsafe { here.recorder.as_ref() } {
            if let Some(place) = recorder.leave_place() {
                holders.leave(place);
            }
            recorder.end.note(clock::thread_cpu_ns());
            self.visits.note_end();
        }
    }

    /// The recorder of the calling thread.
    fn recorder(&self, thread: OtherThread) -> &Recorder {
        let mut recorder = thread.slot.recorder.load(Acquire);
        if recorder.is_null() {
            recorder = self.begin_recorder(thread);
        }
        // SAFETY: it lives until its thread's end is noted, or until the session has ended, before
        // which the hooks are removed.
        unsafe { &*recorder }
    }

    #[cold]
    fn begin_recorder(&self, thread: OtherThread) -> *mut Recorder {
        let recording = self.new_recordings.begin();
        let recorder = Recorder::new(thread.thread, thread.slot, thread.ractor, recording);
        let recorder = self.new.push(recorder);
        thread.slot.recorder.store(recorder, SeqCst);
        recorder
    }

    fn here(&self, recorder: &Recorder) -> LastHere {
        LastHere {
            began_ns: self.began_ns.load(Relaxed),
            thread: recorder.thread,
            recorder,
        }
    }

    /// From here on `tell` is called on the worker, with the number of threads that have ended since
    /// its last call. Once.
    pub fn listen_to_ends(&self, tell: fn(u32)) {
        self.visits.listen(tell);
    }

    /// On the worker: empties the logs, and merges what ended threads have left, where that is due.
    /// Returns how long the worker may sleep before it comes again; `None` as long as nobody runs.
    pub fn tend(&self, holders: &OtherHolders) -> Option<Duration> {
        let now = clock::monotonic_ns();
        if let Some(ended) = self.visits.begin(now) {
            self.empty_logs(now);
            self.visits.tell_of_ends(ended);
        }
        self.visits.until_next(holders)
    }

    fn empty_logs(&self, now: u64) {
        let mut kept = self.kept();
        let began_ns = self.began_ns.load(Relaxed);
        let filling = kept.recorders.iter().filter(|it| it.empty_log(began_ns));
        self.visits.note_filling(filling.count() > 0);
        kept.merge(|recorder, merged| {
            let has_ended = recorder.end.has_come();
            if has_ended {
                recorder.move_to(merged, now, 0, began_ns);
            } else {
                recorder.move_large_tree(merged, began_ns);
            }
            !has_ended
        });
    }

    /// How many threads are known that have not ended.
    pub fn threads(&self) -> usize {
        let kept = self.kept();
        kept.recorders
            .iter()
            .filter(|it| !it.end.has_come())
            .count()
    }

    /// No time counts from `now` on, and no hook is at work any more.
    pub fn pause(&self, now: u64, ready: &OthersReady) {
        let mut kept = self.kept();
        let began_ns = self.began_ns.load(Relaxed);
        let are_many = kept.recorders.len() > KEPT_IN_PAUSE;
        kept.merge(|recorder, merged| {
            recorder.pause(now, ready.since(recorder.thread), began_ns);
            let goes = are_many || recorder.end.has_come();
            if goes {
                recorder.move_to(merged, now, 0, began_ns);
            }
            !goes
        });
    }

    /// Lets go of all recorders: the session has ended, no hook or handler is at work any more, and
    /// a later session's must not find them. The worker may still hold the rest.
    pub fn let_go(&self) {
        self.kept().merge(|_, _| false);
    }

    /// Hands out all words that may be objects, for the garbage collector, which has stopped all
    /// Ractors. Waits for the worker, if that is at work on one of them.
    pub fn each_root(&self, mut mark: impl FnMut(FrameWord)) {
        let kept = self.kept();
        let recorders = kept.recorders.iter();
        recorders.for_each(|recorder| recorder.each_root(&mut mark));
        kept.merged.each_root(mark);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let kept = self.kept();
        let recorders = kept.recorders.iter();
        kept.merged.memory() + recorders.map(|it| it.memory()).sum::<usize>()
    }

    /// All recorders, with the new ones.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.new.take_into(&mut kept.recorders);
        kept
    }
}

impl Kept {
    /// Lets go of the recorders that `stays` doesn't keep.
    fn merge(&mut self, mut stays: impl FnMut(&Recorder, &mut Merged) -> bool) {
        let Kept { recorders, merged } = self;
        recorders.retain(|recorder| {
            let stays = stays(recorder, merged);
            if !stays {
                let_go(recorder);
            }
            stays
        });
    }
}

impl Drop for OtherRactors {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// The recorder is about to be freed: nothing leads to it any more.
fn let_go(recorder: &Recorder) {
    let slot = recorder.slot;
    slot.recorder.store(ptr::null_mut(), SeqCst);
    if recorder.end.has_come() {
        // SAFETY: slots are leaked boxes, and the thread, which has ended, was the only other one
        // that led to it.
        drop(unsafe { Box::from_raw(ptr::from_ref(slot).cast_mut()) });
    }
}

/// The signal handler: takes the stack of the calling thread, which runs in the place of `owner`
/// on native thread `native_id`, for the tick at `tick_ns`; unless `is_stopped` says that it has been
/// stopped for a collection.
///
/// # Safety
/// `owner` is that of a place that the handler has read, and the handler is gone before the
/// session's recorders are. The thread has its Ractor's GVL. Who moves objects has had `is_stopped`
/// answer so before, and has marked what recorders have since.
pub unsafe fn take_stack(
    owner: *mut c_void,
    vm: &impl VmFrames,
    native_id: NativeId,
    tick_ns: u64,
    is_stopped: impl FnOnce() -> bool,
) {
    // SAFETY: the recorder of the thread that runs there, by this function's contract.
    if let Some(recorder) = unsafe { owner.cast::<Recorder>().as_ref() } {
        // SAFETY: as above.
        unsafe { recorder.take_stack(vm, native_id, tick_ns, is_stopped) };
    }
}

/// Reading a stack for `owner` has faulted. Async-signal-safe.
///
/// # Safety
/// `owner` is the one that [`OtherHolders::take_interrupted`] hands out, during that call.
pub unsafe fn give_up(owner: *mut c_void) {
    // SAFETY: as for `take_stack`.
    if let Some(recorder) = unsafe { owner.cast::<Recorder>().as_ref() } {
        recorder.give_up();
    }
}

#[cfg(test)]
mod tests;

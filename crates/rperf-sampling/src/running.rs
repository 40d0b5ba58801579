//! A running session as the VM's events find it: the engine's [`Session`], all threads, and what
//! hooks need besides. Its methods take the events; the bridge calls them in hooks, in the
//! sampling callback, in the signal handler of a tick, and in methods of the native API.

mod collections;
mod due;
mod events;
mod every_thread;
mod off_gvl;
mod other_ractors;
mod sections;
mod start;
mod ticks;
mod waits;

use crate::accounting::Accounting;
use crate::accounting::mode::Mode;
use crate::config::SessionConfig;
use crate::objects::UnsharedGc;
use crate::ractors::OtherRactors;
use crate::recording::NotedLabels;
use crate::session::Session;
use crate::threads::{NewList, ThreadState};
use crate::tick_capture::TickCapture;
use crate::timer::ticks::Ticks;
use collections::CollectionCounts;
pub use due::{FollowUp, NewFrames, Wanted, WantedStack};
pub use every_thread::EveryThread;
pub use off_gvl::OffGvl;
use rperf_vm::{
    Backtrace, GcProgress, Gvl, GvlCell, GvlRef, OthersReady, SessionId, VmFrames, VmName,
};
use rperf_vm::{Waiters, Waits};
pub use sections::Sections;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::SeqCst};
pub use ticks::Learned;

/// A running session with all that hooks need.
#[derive(Debug)]
pub struct RunningSession {
    /// Its id.
    pub id: SessionId,
    /// What its weights measure.
    pub mode: Mode,
    /// The word of [`RequestId`](rperf_model::RequestId) for its requests.
    pub request_word: u32,
    /// The engine's ticks, for hooks that need nothing else.
    pub ticks: Arc<Ticks>,
    /// Threads seen for the first time, from any thread.
    pub new_threads: NewList<ThreadState>,
    /// Its sections.
    pub sections: Sections,
    /// The part that needs the GVL.
    gvl_state: GvlCell<GvlState>,
    /// Where stacks are taken to that an event needs.
    backtrace: GvlCell<Backtrace>,
    /// The stacks that were taken at ticks.
    tick_capture: Arc<TickCapture>,
    /// When threads became ready that were woken by others.
    others_ready: OthersReady,
    /// Who waits for the main Ractor's GVL, where that is measured.
    waiters: Option<Arc<Waiters>>,
    /// The thread that profiles are without, by the number of its [`VmThread`](rperf_vm::VmThread); 0: none.
    left_out: AtomicUsize,
    /// The threads of other Ractors.
    others: Arc<OtherRactors>,
    /// How many threads have ended and wait to be merged.
    ended_threads: AtomicUsize,
    /// Native threads may run several Ruby threads (RUBY_MN_THREADS=1): then the
    /// CPU clock of a thread that is not running can't be read.
    shares_native_threads: bool,
    /// After a panic, and while stopping: callbacks do nothing any more.
    is_over: AtomicBool,
    /// What collections took.
    pub collections: CollectionCounts,
    /// Their time until it is shared among the sites of objects, if it is.
    pub unshared_gc: UnsharedGc,
}

/// What only the holder of the GVL may touch.
#[derive(Debug)]
pub struct GvlState {
    /// The engine's session.
    pub engine: Session,
    /// All threads that have been taken in. The VM's slots hold their addresses.
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    pub threads: Vec<Box<ThreadState>>,
    gc: GcProgress,
    /// The waits for the GVL as the piece of collection began that is at work.
    waits_before_gc: Option<Waits>,
}

impl RunningSession {
    /// Around the session of the engine, which was started with `config`. Outside of hooks.
    pub fn new(
        vm: &impl VmFrames,
        mut engine: Session,
        id: SessionId,
        config: SessionConfig,
        with_lines: bool,
        shares_native_threads: bool,
    ) -> Self {
        // Of a VM that isn't known to be as expected, nothing is read past its functions.
        let layout = vm.layout().and_then(|it| it.check(vm).map(|()| *it));
        engine.lacks_compiled_lines(layout.err().filter(|_| with_lines));
        let layout = layout.ok();
        let others = engine.shared_others();
        others.set_lines(with_lines, layout);
        let waiters = config
            .measured()
            .blames
            .then(|| Arc::new(Waiters::default()));
        let aggregate = config.aggregate;
        let capture = TickCapture::new(vm, with_lines, aggregate, layout, waiters.clone());
        Self {
            id,
            mode: config.mode,
            request_word: engine.request_word(),
            others,
            ticks: engine.shared_ticks(),
            new_threads: NewList::default(),
            sections: Sections::default(),
            tick_capture: Arc::new(capture),
            gvl_state: GvlCell::new(GvlState {
                engine,
                threads: Vec::new(),
                gc: GcProgress::default(),
                waits_before_gc: None,
            }),
            backtrace: GvlCell::new(Backtrace::new(with_lines)),
            others_ready: OthersReady::default(),
            waiters,
            left_out: AtomicUsize::new(0),
            ended_threads: AtomicUsize::new(0),
            shares_native_threads,
            is_over: AtomicBool::new(false),
            collections: CollectionCounts::default(),
            unshared_gc: UnsharedGc::default(),
        }
    }

    /// The part that needs the GVL; `None` if it is borrowed further up the same stack.
    #[inline]
    pub fn state<'a>(&'a self, gvl: &'a Gvl<'_>) -> Option<GvlRef<'a, GvlState>> {
        self.gvl_state.borrow(gvl)
    }

    /// The engine's session, all threads' states, and nothing else: the session is taken down.
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    pub fn into_parts(self) -> (Session, Vec<Box<ThreadState>>) {
        self.others.let_go();
        let mut state = self.gvl_state.into_inner();
        self.new_threads.take_into(&mut state.threads);
        (state.engine, state.threads)
    }

    /// Whether time counts, and callbacks do something.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.sections.are_open() && !self.is_over()
    }

    /// Whether callbacks do nothing any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Acquire)
    }

    /// Has callbacks do nothing any more. Returns whether they did something before.
    pub fn end(&self) -> bool {
        self.tick_capture.end();
        !self.is_over.swap(true, SeqCst)
    }

    /// After a panic: sampling ends for this session. Returns whether this is news.
    #[cold]
    pub fn fail(&self) -> bool {
        let is_news = self.end();
        if is_news {
            // Nobody tells the timer any more who runs.
            self.ticks.pause();
        }
        is_news
    }

    /// Notes the labels of the present fiber of `thread`, the calling one: for what ticks find
    /// from now on.
    #[inline]
    pub fn note_labels(&self, gvl: &Gvl<'_>, thread: &ThreadState, labels: NotedLabels<'_>) {
        if let Some(mut part) = thread.gvl_part(gvl) {
            thread.note_labels(&mut part, labels);
        }
    }

    /// Notes the name of `thread`, which is alive.
    #[inline]
    pub fn note_name(&self, gvl: &Gvl<'_>, thread: &ThreadState, name: &impl VmName) {
        let Some(mut part) = thread.gvl_part(gvl) else {
            return;
        };
        if part.name.differs(name)
            && let Some(seq) = part.accounting.as_ref().map(Accounting::seq)
            && let Some(mut state) = self.state(gvl)
        {
            state.engine.name_thread(seq, part.name.note(name));
        }
    }

    /// Hands out all words that may be frames, for the garbage collector: those of the frame
    /// table, which are objects.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn each_frame(&self, mark: impl FnMut(rperf_vm::FrameWord)) {
        // SAFETY: by this function's contract.
        unsafe { self.gvl_state.peek() }
            .engine
            .frames()
            .for_each(mark);
    }

    /// Hands out all words that the signal handler has written, for the garbage collector, and
    /// the fibers that it compares them with, which must not move. Some come several times, and
    /// some are no objects, because a stack was misread.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn each_tick_root(&self, mut mark: impl FnMut(rperf_vm::FrameWord)) {
        // SAFETY: by this function's contract.
        unsafe { self.tick_capture.each_root(&mut mark) };
        // SAFETY: as above.
        let threads = &unsafe { self.gvl_state.peek() }.threads;
        for thread in threads {
            // SAFETY: as above.
            mark(unsafe { thread.fiber() }.0);
        }
        self.others.each_root(mark);
    }

    /// Bytes held.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn memory(&self) -> usize {
        // SAFETY: by this function's contract.
        let (state, backtrace) = unsafe { (self.gvl_state.peek(), self.backtrace.peek()) };
        // SAFETY: as above.
        let tick_capture = unsafe { self.tick_capture.memory() };
        // SAFETY: as above.
        let threads = state.threads.iter().map(|it| unsafe { it.memory() });
        let slots = state.threads.capacity() * size_of::<Box<ThreadState>>();
        state.engine.memory()
            + self.others.memory()
            + backtrace.memory()
            + tick_capture
            + slots
            + self.waiters.as_ref().map_or(0, |it| size_of_val(&**it))
            + self.collections.memory()
            + threads.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;

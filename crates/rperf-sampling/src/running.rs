//! A running session as the VM's events find it: the engine's [`Session`], all threads, and what
//! hooks need besides. Its methods take the events; the bridge calls them in hooks, in the
//! sampling callback, in the signal handler of a tick, and in methods of the native API.

mod collections;
mod due;
mod events;
mod every_thread;
mod gc_sums;
mod gvl_waits;
mod off_gvl;
mod other_ractors;
mod sections;
mod stacks;
mod start;
mod ticks;
mod turnover;
mod waits;

use crate::accounting::Accounting;
use crate::config::SessionConfig;
use crate::ractors::OtherRactors;
use crate::recording::NotedLabels;
use crate::session::Session;
use crate::threads::ThreadState;
use crate::tick_capture::TickCapture;
use crate::timer::ticks::Ticks;
pub use due::{FollowUp, NewFrames, Wanted, WantedStack};
pub use every_thread::EveryThread;
pub use gc_sums::GcSums;
use gvl_waits::GvlWaits;
pub use off_gvl::OffGvl;
use rperf_model::Mode;
use rperf_vm::{GcProgress, Gvl, GvlCell, GvlRef, SessionId, VmFrames, VmName, Waiters, Waits};
pub use sections::Sections;
use stacks::Stacks;
use std::sync::Arc;
pub use ticks::Learned;
pub use turnover::Turnover;

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
    /// Threads that have come and gone.
    pub turnover: Turnover,
    /// Its sections.
    pub sections: Sections,
    /// The part that needs the GVL.
    gvl_state: GvlCell<GvlState>,
    stacks: Stacks,
    waits: GvlWaits,
    /// The threads of other Ractors.
    others: Arc<OtherRactors>,
    /// Native threads may run several Ruby threads (RUBY_MN_THREADS=1): then the
    /// CPU clock of a thread that is not running can't be read.
    shares_native_threads: bool,
    /// What collections took.
    pub gc: GcSums,
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
            turnover: Turnover::default(),
            sections: Sections::default(),
            gvl_state: GvlCell::new(GvlState {
                engine,
                threads: Vec::new(),
                gc: GcProgress::default(),
                waits_before_gc: None,
            }),
            stacks: Stacks::new(capture, with_lines),
            waits: GvlWaits::new(waiters),
            shares_native_threads,
            gc: GcSums::default(),
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
        self.turnover.new.take_into(&mut state.threads);
        (state.engine, state.threads)
    }

    /// Whether time counts, and callbacks do something.
    #[inline]
    pub fn is_counting(&self) -> bool {
        self.sections.are_counting()
    }

    /// Whether callbacks do nothing any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.sections.is_over()
    }

    /// Has callbacks do nothing any more. Returns whether they did something before.
    pub fn end(&self) -> bool {
        self.stacks.at_ticks.end();
        self.sections.end()
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
        unsafe { self.stacks.at_ticks.each_root(&mut mark) };
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
        let (state, stacks) = unsafe { (self.gvl_state.peek(), self.stacks.memory()) };
        // SAFETY: as above.
        let threads = state.threads.iter().map(|it| unsafe { it.memory() });
        let slots = state.threads.capacity() * size_of::<Box<ThreadState>>();
        state.engine.memory()
            + self.others.memory()
            + stacks
            + slots
            + self.waits.memory()
            + self.gc.by_cause.memory()
            + threads.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;

//! What is kept for one Ruby thread: atomics for events that come without the GVL, and a part
//! that the GVL protects. Made and used by the bridge's hooks; the session owns it.

use super::ThreadEnd;
use crate::accounting::Accounting;
use crate::recording::NotedLabels;
use rperf_vm::{FiberWord, Gvl, GvlCell, GvlRef, LabelSet, LastStack, NotedName, VmThread};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Sentinel that `Ticks::free_since` never returns.
pub const UNKNOWN_TURN: u64 = u64::MAX;

/// How many threads were seen so far, in all sessions.
static SERIALS: AtomicU64 = AtomicU64::new(0);

/// The serial of the thread that was seen last.
pub fn last_serial() -> u64 {
    SERIALS.load(Relaxed)
}

/// A Ruby thread of the main Ractor. The VM's thread-specific slot points to it from the thread's
/// first event to the session's end; the session owns it.
#[derive(Debug)]
pub struct ThreadState {
    /// The thread; only used while it has not ended.
    pub thread: VmThread,
    /// No other thread of this process has had it. Later ones have greater serials.
    pub serial: u64,
    /// When READY came after the last SUSPENDED; 0 if it hasn't.
    pub ready_ns: AtomicU64,
    /// The result of `Ticks::free_since` at READY, if that came on the thread itself;
    /// else [`UNKNOWN_TURN`].
    pub free_since: AtomicU64,
    /// Noted by EXITED as its last touch.
    pub end: ThreadEnd,
    /// The native thread that it last ran on, 0 if not known.
    pub native_id: AtomicU32,
    /// The labels of one of its fibers have been noted. Read by the signal handler.
    knows_fiber: AtomicBool,
    gvl_part: GvlCell<GvlPart>,
}

/// What only the holder of the main Ractor's GVL may touch.
#[derive(Debug, Default)]
pub struct GvlPart {
    /// `None` until it is seen to run, or a section begins.
    pub accounting: Option<Accounting>,
    /// The accounting knows the CPU clock of the thread's native thread.
    pub is_bound: bool,
    /// Its stack at the last capture.
    pub last_stack: LastStack,
    /// Its name, once the session knows it.
    pub name: NotedName,
    /// The labels of its present fiber, where labels are used.
    pub fiber_labels: FiberLabels,
}

/// A fiber and its labels.
#[derive(Debug, Default)]
pub struct FiberLabels {
    fiber: FiberWord,
    set: Option<LabelSet>,
}

impl FiberLabels {
    /// What is noted.
    #[inline]
    pub fn noted(&self) -> NotedLabels<'_> {
        NotedLabels {
            fiber: self.fiber,
            set: self.set.as_ref(),
        }
    }
}

impl ThreadState {
    /// For a thread that nothing is known of yet.
    pub fn new(thread: VmThread) -> Box<ThreadState> {
        Box::new(ThreadState {
            thread,
            serial: SERIALS.fetch_add(1, Relaxed) + 1,
            ready_ns: AtomicU64::new(0),
            free_since: AtomicU64::new(UNKNOWN_TURN),
            end: ThreadEnd::default(),
            native_id: AtomicU32::new(0),
            knows_fiber: AtomicBool::new(false),
            gvl_part: GvlCell::new(GvlPart::default()),
        })
    }

    /// Forgets what its events have reported: some were missed.
    #[inline]
    pub fn forget_events(&self) {
        self.ready_ns.store(0, Relaxed);
        self.free_since.store(UNKNOWN_TURN, Relaxed);
    }

    /// The part that the GVL protects; `None` if it is borrowed further up the same stack.
    #[inline]
    pub fn gvl_part<'a>(&'a self, gvl: &'a Gvl<'_>) -> Option<GvlRef<'a, GvlPart>> {
        self.gvl_part.borrow(gvl)
    }

    /// Notes the labels of the thread's present fiber.
    #[inline]
    pub fn note_labels(&self, part: &mut GvlPart, labels: NotedLabels<'_>) {
        let NotedLabels { fiber, set } = labels;
        self.knows_fiber
            .store(fiber != FiberWord::default(), Relaxed);
        let noted = &mut part.fiber_labels;
        noted.fiber = fiber;
        if noted.set.as_ref() != set {
            noted.set = set.cloned();
        }
    }

    /// Whether the labels of one of its fibers have been noted.
    #[inline]
    pub fn knows_fiber(&self) -> bool {
        self.knows_fiber.load(Relaxed)
    }

    /// The fiber whose labels are noted, or a null word. In a collection, too.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn fiber(&self) -> FiberWord {
        // SAFETY: by this function's contract.
        unsafe { self.gvl_part.peek() }.fiber_labels.fiber
    }

    /// Bytes held. In a collection, too.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub unsafe fn memory(&self) -> usize {
        // SAFETY: by this function's contract.
        size_of::<Self>() + unsafe { self.gvl_part.peek() }.last_stack.memory()
    }
}

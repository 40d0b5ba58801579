//! What is kept for each Ruby thread while a session runs, and the list through
//! which threads are announced.

use rperf_engine::{Accounting, LabelSet, LastStack};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire,
    Ordering::Relaxed, Ordering::Release,
};

/// No value of `Ticks::free_since`.
pub const UNKNOWN_TURN: u64 = u64::MAX;

/// How many threads were seen so far, in all sessions.
static SERIALS: AtomicU64 = AtomicU64::new(0);

/// The serial of the thread that was seen last.
pub fn last_serial() -> u64 {
    SERIALS.load(Relaxed)
}

/// One Ruby thread of the main Ractor. The VM's thread-specific slot points to it from the thread's
/// first event to the session's end; the session owns it.
pub struct ThreadState {
    /// The thread; only used while it has not ended.
    pub thread: rb_sys::VALUE,
    /// No other thread of this process has had it. Later ones have greater serials.
    pub serial: u64,
    /// When READY came after the last SUSPENDED; 0 if it hasn't.
    pub ready_ns: AtomicU64,
    /// What `Ticks::free_since` said at READY, if that came on the thread itself;
    /// else [`UNKNOWN_TURN`].
    pub free_since: AtomicU64,
    /// The thread's pthread, once known; 0 while it has none of its own.
    pub pthread: AtomicUsize,
    /// Its CPU clock at the end; valid once `exited`.
    pub exit_cpu_ns: AtomicU64,
    /// Set by EXITED as its last touch.
    pub exited: AtomicBool,
    /// The native thread that it last ran on, 0 if not known.
    pub native_id: AtomicU32,
    gvl_part: UnsafeCell<GvlPart>,
    next: *mut ThreadState,
}

/// What only the holder of the main Ractor's GVL may touch.
#[derive(Default)]
pub struct GvlPart {
    /// `None` until it is seen to run, or a section begins.
    pub accounting: Option<Accounting>,
    /// The accounting knows the CPU clock of the thread's native thread.
    pub placed: bool,
    /// Its stack at the last capture.
    pub last_stack: LastStack,
    /// The labels of its present fiber, where labels are used.
    pub fiber_labels: Option<LabelSet>,
}

// SAFETY: the GVL part is used under the GVL only (see `gvl_part`), `next` only
// by the list while it holds the state; the rest is atomic or constant.
unsafe impl Send for ThreadState {}
// SAFETY: as for Send.
unsafe impl Sync for ThreadState {}

impl ThreadState {
    /// For a thread that nothing is known of yet.
    pub fn new(thread: rb_sys::VALUE) -> Box<ThreadState> {
        Box::new(ThreadState {
            thread,
            serial: SERIALS.fetch_add(1, Relaxed) + 1,
            ready_ns: AtomicU64::new(0),
            free_since: AtomicU64::new(UNKNOWN_TURN),
            pthread: AtomicUsize::new(0),
            exit_cpu_ns: AtomicU64::new(0),
            exited: AtomicBool::new(false),
            native_id: AtomicU32::new(0),
            gvl_part: UnsafeCell::default(),
            next: ptr::null_mut(),
        })
    }

    /// Forgets what its events have told: some were missed.
    pub fn forget_events(&self) {
        self.ready_ns.store(0, Relaxed);
        self.free_since.store(UNKNOWN_TURN, Relaxed);
    }

    /// The part that the GVL protects.
    ///
    /// # Safety
    /// The caller holds the main Ractor's GVL and has no other reference to it.
    #[inline]
    #[allow(clippy::mut_from_ref, reason = "exclusive by the caller's promise")]
    pub unsafe fn gvl_part(&self) -> &mut GvlPart {
        // SAFETY: by this function's contract.
        unsafe { &mut *self.gvl_part.get() }
    }
}

/// Threads seen for the first time. Pushing takes no lock, from any thread; the
/// whole list is taken at once, under the GVL, so that no ABA problem arises.
#[derive(Default)]
pub struct NewThreads(AtomicPtr<ThreadState>);

impl NewThreads {
    /// Adds `state`; the list owns it from now on. Returns its address, which
    /// stays the same.
    pub fn push(&self, state: Box<ThreadState>) -> *mut ThreadState {
        let state = Box::into_raw(state);
        let mut head = self.0.load(Acquire);
        loop {
            // SAFETY: this thread alone has `state` until the exchange succeeds.
            unsafe { (*state).next = head };
            match self.0.compare_exchange_weak(head, state, AcqRel, Acquire) {
                Ok(_) => return state,
                Err(newer) => head = newer,
            }
        }
    }

    /// Moves all of them to `threads`.
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    pub fn take_into(&self, threads: &mut Vec<Box<ThreadState>>) {
        let mut head = self.0.swap(ptr::null_mut(), AcqRel);
        while !head.is_null() {
            // SAFETY: every list entry came from `Box::into_raw` in `push`, and
            // the swap gave this thread the whole list.
            let state = unsafe { Box::from_raw(head) };
            head = state.next;
            threads.push(state);
        }
    }
}

impl Drop for NewThreads {
    fn drop(&mut self) {
        self.take_into(&mut Vec::new());
    }
}

/// Marks `state` as ended; nothing may touch it afterwards on the thread's side.
pub fn mark_exited(state: &ThreadState, cpu_ns: u64) {
    state.exit_cpu_ns.store(cpu_ns, Relaxed);
    state.exited.store(true, Release);
}

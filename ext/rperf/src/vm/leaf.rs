//! The stack at the tick. The engine interrupts the thread that holds the GVL; its
//! signal handler takes the stack here, into a slot that the sampling callback, at
//! the safepoint that follows, joins with what it finds.

use super::capture::{self, Scratch};
use super::{LIVE, gc_hook, native_thread, sampling_job};
use rb_sys::VALUE;
use rperf_engine::{Session, Stack, clock, leaf_line_if_confirmed};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Where the handler puts the stack of the last tick.
pub struct Slot {
    /// The handler's, but while the sampling callback runs.
    scratch: UnsafeCell<Scratch>,
    /// Frames in it; 0 if there is no stack. Written last.
    depth: AtomicUsize,
    /// The leaf, which nothing else may keep alive; 0 if there is none.
    leaf: AtomicUsize,
    tick_ns: AtomicU64,
    /// The native thread whose stack it is.
    tid: AtomicU32,
    /// Whether samples have lines.
    with_lines: bool,
    /// Stacks taken, those used, and the time that taking them took in ns: since the
    /// counts were last taken.
    taken: AtomicU64,
    used: AtomicU64,
    spent_ns: AtomicU64,
}

// SAFETY: the scratch is used by threads with the GVL only, and there either by the
// handler or by the sampling callback, during which the handler leaves it alone.
unsafe impl Sync for Slot {}

impl Slot {
    pub fn new(with_lines: bool) -> Slot {
        Slot {
            // Lines tell whether the stack is whole.
            scratch: UnsafeCell::new(Scratch::new(true)),
            depth: AtomicUsize::new(0),
            leaf: AtomicUsize::new(0),
            tick_ns: AtomicU64::new(0),
            tid: AtomicU32::new(0),
            with_lines,
            taken: AtomicU64::new(0),
            used: AtomicU64::new(0),
            spent_ns: AtomicU64::new(0),
        }
    }

    /// Takes the stack of the calling thread, for the tick at `tick_ns`. In the
    /// handler.
    fn fill(&self, tick_ns: u64) {
        let began = clock::monotonic_ns();
        self.depth.store(0, Release);
        self.taken.fetch_add(1, Relaxed);
        // SAFETY: the handler runs on the thread with the GVL and not within the
        // sampling callback, so nobody else uses the scratch.
        let scratch = unsafe { &mut *self.scratch.get() };
        let Some(stack) = scratch.take_current() else {
            return;
        };
        let (depth, leaf) = (stack.frames.len(), stack.frames.first());
        self.leaf.store(leaf.copied().unwrap_or(0), Release);
        self.tick_ns.store(tick_ns, Relaxed);
        self.tid.store(native_thread::id(), Relaxed);
        self.depth.store(depth, Release);
        let spent = clock::monotonic_ns().saturating_sub(began);
        self.spent_ns.fetch_add(spent, Relaxed);
    }

    /// Counts what was taken since the last time.
    pub fn count_for(&self, session: &mut Session) {
        let [taken, used, spent] =
            [&self.taken, &self.used, &self.spent_ns].map(|count| count.swap(0, Relaxed));
        session.count_tick_stacks(taken, used, spent);
    }

    /// Whether a tick has left a stack.
    pub fn is_filled(&self) -> bool {
        self.depth.load(Acquire) > 0
    }

    /// What the last tick has left for the calling thread.
    ///
    /// # Safety
    /// For the sampling callback, which holds on to it no longer than it runs.
    pub unsafe fn take(&self) -> Option<StackAtTick<'_>> {
        let depth = self.depth.load(Acquire);
        let is_ours = depth > 0 && self.tid.load(Relaxed) == native_thread::id();
        if !is_ours {
            self.clear();
            return None;
        }
        Some(StackAtTick { slot: self, depth })
    }

    fn clear(&self) {
        self.depth.store(0, Release);
        self.leaf.store(0, Release);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        // SAFETY: the lengths that it reads never change.
        unsafe { &*self.scratch.get() }.memory()
    }
}

/// The stack that a tick has left for the calling thread; dropped, it is gone.
pub struct StackAtTick<'a> {
    slot: &'a Slot,
    depth: usize,
}

impl StackAtTick<'_> {
    /// When the tick was.
    pub fn tick_ns(&self) -> u64 {
        self.slot.tick_ns.load(Relaxed)
    }

    /// The stack, if the one found at the safepoint bears it out.
    pub fn confirmed(&self, found: Stack<'_>) -> Option<Stack<'_>> {
        // SAFETY: this exists in the sampling callback only, where the handler leaves
        // the scratch alone; the reference below is the only other one.
        let scratch = unsafe { &mut *self.slot.scratch.get() };
        let line = leaf_line_if_confirmed(scratch.stack(self.depth), found, |leaf| {
            // SAFETY: the leaf of this slot, which the VM keeps alive.
            unsafe { capture::is_c_method(leaf as VALUE) }
        })?;
        scratch.set_leaf_line(line);
        self.slot.used.fetch_add(1, Relaxed);
        let mut stack = scratch.stack(self.depth);
        if !self.slot.with_lines {
            stack.lines = &[];
        }
        Some(stack)
    }
}

impl Drop for StackAtTick<'_> {
    fn drop(&mut self) {
        self.slot.clear();
    }
}

/// Takes the stack of the calling thread, which holds the GVL. In a signal handler,
/// at any point of the program: not while this Ractor collects garbage, nor while the
/// last stack is being read, nor where other Ractors may collect. A thread that they
/// have stopped for that still gets signals. Were it to read while compaction moves
/// objects, it would fault in the collector's handler of faults, and wait there for
/// the VM's lock, on a signal stack where no collector looks for it.
pub fn take_stack(tick_ns: u64) {
    let others = native_thread::other_ractors();
    if others || gc_hook::is_collecting() || sampling_job::is_at_work() {
        return;
    }
    // SAFETY: a session is freed with the GVL, which this thread has, and only after
    // the handlers are gone.
    let live = unsafe { LIVE.load(Acquire).as_ref() };
    if let Some(live) = live.filter(|live| !live.quiet.load(Acquire)) {
        live.slot.fill(tick_ns);
    }
}

struct LeafRootType(rb_sys::rb_data_type_t);
// SAFETY: function pointers and constants, never written.
unsafe impl Sync for LeafRootType {}

/// The VM's view of the slot's leaf. The handler can't run write barriers, so unlike
/// the frame roots this object does without, and is marked in every collection.
static LEAF_ROOT: LeafRootType = LeafRootType(rb_sys::rb_data_type_t {
    wrap_struct_name: c"rperf leaf root".as_ptr(),
    function: rb_sys::rb_data_type_struct__bindgen_ty_1 {
        dmark: Some(mark_leaf),
        dfree: None,
        dsize: None,
        dcompact: None,
        reserved: [ptr::null_mut(); 1],
    },
    parent: ptr::null(),
    data: ptr::null_mut(),
    flags: rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE,
});

/// Makes the object, which lives as long as the process. With the GVL.
pub fn new_root() -> VALUE {
    super::capture::new_permanent_object(&LEAF_ROOT.0)
}

/// In GC, on any Ractor's thread.
unsafe extern "C" fn mark_leaf(_: *mut c_void) {
    // SAFETY: as in `capture::mark_frames`.
    if let Some(live) = unsafe { LIVE.load(Acquire).as_ref() } {
        let leaf = live.slot.leaf.load(Acquire) as VALUE;
        if leaf != 0 {
            // SAFETY: the topmost frame of a running thread is a live object, and
            // has been marked since.
            unsafe { rb_sys::rb_gc_mark(leaf) };
        }
    }
}

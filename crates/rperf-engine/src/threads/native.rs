//! Facts about the native thread at hand: whether it runs the main Ractor, its
//! id, and which Ruby thread ran on it last.

use crate::vm::Process;
use crate::vm::state::thread_state::ThreadState;
use rb_sys::VALUE;
use rperf_engine::clock;
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

thread_local! {
    /// The Ruby thread that last ran on this native thread. Constant and without
    /// a destructor, so that access never allocates.
    static LAST_RUN: Cell<LastRun> = const { Cell::new(NOBODY) };
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// What was noted before the last [`forget_all`] no longer counts.
static ROUND: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy)]
struct LastRun {
    state: *const ThreadState,
    thread: VALUE,
    round: u64,
}

const NOBODY: LastRun = LastRun {
    state: ptr::null(),
    thread: 0,
    round: 0,
};

/// Notes that `state`'s thread runs here. Returns whether another one ran here
/// before, so that the CPU clock doesn't speak of this thread alone.
#[inline]
pub fn switch_to(state: &ThreadState) -> bool {
    let last = LAST_RUN.replace(LastRun {
        state,
        thread: state.thread,
        round: ROUND.load(Relaxed),
    });
    !ptr::eq(last.state, state)
}

/// Whether it is noted that `state`'s thread runs here.
#[inline]
pub fn is_noted(state: &ThreadState) -> bool {
    let last = LAST_RUN.get();
    ptr::eq(last.state, state) && last.round == ROUND.load(Relaxed)
}

/// The state of `thread`, if that is noted to have run here. It doesn't look at the
/// thread's object: a thread without the GVL must not, as compaction, which no such
/// thread waits for, keeps everybody off the pages that it moves objects from.
///
/// # Safety
/// For hooks only: while they run, states live that were noted since the hooks were
/// added, until their thread's EXITED. That calls [`leave`], but on one native thread:
/// no two Ruby threads may share this one.
#[inline]
pub unsafe fn last_run<'a>(thread: VALUE) -> Option<&'a ThreadState> {
    let last = LAST_RUN.get();
    if last.thread != thread || last.round != ROUND.load(Relaxed) {
        return None;
    }
    // SAFETY: by this function's contract.
    unsafe { last.state.as_ref() }
}

/// Forgets the Ruby thread, which has ended: its memory may be another's soon.
pub fn leave() {
    LAST_RUN.set(NOBODY);
}

/// Forgets the Ruby threads of all native threads. Before hooks are added.
pub fn forget_all() {
    ROUND.fetch_add(1, Relaxed);
}

/// The kernel's id of this thread, asked for once.
#[inline]
pub fn id() -> u32 {
    let mut id = ID.get();
    if id == 0 {
        id = clock::thread_id();
        ID.set(id);
    }
    id
}

/// This thread's pthread: cheap to ask for, and the same for its whole life.
#[inline]
pub fn pthread() -> usize {
    // SAFETY: takes nothing and can't fail.
    unsafe { libc::pthread_self() as usize }
}

/// In a forked child: this thread has a new id.
pub fn forget_id() {
    ID.set(0);
}

/// Makes the key that tells the main Ractor from others. On the main Ractor.
pub fn mark_main_ractor() -> rb_sys::rb_ractor_local_key_t {
    static MARK: u8 = 0;
    // The VM calls `free` with the value when the main Ractor ends.
    extern "C" fn free(_: *mut c_void) {}
    struct Type(rb_sys::rb_ractor_local_storage_type);
    // SAFETY: two function pointers, never written.
    unsafe impl Sync for Type {}
    static TYPE: Type = Type(rb_sys::rb_ractor_local_storage_type {
        mark: None,
        free: Some(free),
    });
    // SAFETY: TYPE lives for ever; this runs on the main Ractor with its GVL.
    let key = unsafe { rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const TYPE.0) };
    let mark = (&raw const MARK).cast_mut().cast();
    // SAFETY: the key was just made; the VM hands the pointer back, no more.
    unsafe { rb_sys::rb_ractor_local_storage_ptr_set(key, mark) };
    key
}

/// Another Ractor than the main one may run.
static OTHER_RACTORS: AtomicBool = AtomicBool::new(false);

/// Notes whether other Ractors than the main one may run.
pub fn set_other_ractors(there: bool) {
    OTHER_RACTORS.store(there, SeqCst);
}

/// Whether other Ractors than the main one may run. Async-signal-safe.
pub fn other_ractors() -> bool {
    OTHER_RACTORS.load(SeqCst)
}

/// Whether the calling Ruby thread belongs to the main Ractor. For threads that
/// run Ruby code: not in STARTED or READY.
#[inline]
pub fn in_main_ractor(process: &Process) -> bool {
    // SAFETY: the key is valid, and the caller is a Ruby thread of some Ractor.
    !unsafe { rb_sys::rb_ractor_local_storage_ptr(process.main_ractor_key) }.is_null()
}

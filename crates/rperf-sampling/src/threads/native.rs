//! Facts about the native thread at hand: its id, and which Ruby thread ran on it last. Asked
//! for by the bridge's hooks, on the thread itself, with the GVL or without.

use super::ThreadState;
use rperf_vm::{NativeId, VmThread, clock};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    /// The Ruby thread that last ran on this native thread. Constant and without
    /// a destructor, so that access never allocates.
    static LAST_RUN: Cell<LastRun> = const { Cell::new(NOBODY) };
    static ID: Cell<NativeId> = const { Cell::new(NativeId::NONE) };
}

/// What was noted before the last [`forget_all`] no longer counts.
static ROUND: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy)]
struct LastRun {
    state: *const ThreadState,
    thread: VmThread,
    round: u64,
}

const NOBODY: LastRun = LastRun {
    state: ptr::null(),
    thread: VmThread(0),
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
pub unsafe fn last_run<'a>(thread: VmThread) -> Option<&'a ThreadState> {
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
pub fn id() -> NativeId {
    let mut id = ID.get();
    if !id.is_known() {
        id = clock::thread_id();
        ID.set(id);
    }
    id
}

/// In a forked child: this thread has a new id.
pub fn forget_id() {
    ID.set(NativeId::NONE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_the_ruby_thread_that_ran_here_last() {
        let (first, second) = (
            ThreadState::new(VmThread(40)),
            ThreadState::new(VmThread(80)),
        );
        let noted = |thread| {
            // SAFETY: both states live to the end of the test.
            unsafe { last_run(VmThread(thread)) }.map(|state| state.serial)
        };
        forget_all();
        assert!(switch_to(&first), "nobody before it");
        assert!(!switch_to(&first));
        assert_eq!((noted(40), noted(80)), (Some(first.serial), None));
        assert!(switch_to(&second));
        assert!(is_noted(&second) && !is_noted(&first));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(noted(80), None, "another native thread"));
        });
        leave();
        assert_eq!(noted(80), None);
        assert!(switch_to(&first) && is_noted(&first));
        forget_all();
        assert!(!is_noted(&first));
        assert_eq!(noted(40), None, "noted before all was forgotten");
        assert!(!switch_to(&first), "but no other thread has run here");
    }

    #[test]
    fn the_id_is_the_kernels() {
        assert_eq!((id(), id()), (clock::thread_id(), clock::thread_id()));
        let other = std::thread::spawn(|| (id(), clock::thread_id()));
        let (known, asked) = other.join().expect("it doesn't panic");
        assert_eq!(known, asked);
        forget_id();
        assert_eq!(id(), clock::thread_id());
    }
}

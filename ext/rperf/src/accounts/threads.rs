//! The threads of the main Ractor that have had accounts: from a Ruby thread to its accounts. With
//! the GVL, but for the end of a thread.

use super::process::{self, ProcessAccounts};
use crate::ruby::counters;
use crate::ruby::threads::{RubyThread, ThreadKey};
use rperf_accounts::{Moment, OpTime, Opened, ThreadAccounts};
use rperf_vm::{FiberWord, Gvl, GvlCell, VmThread, clock};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Key of a thread's [`AccountedThread`].
static ACCOUNTED: ThreadKey = ThreadKey::new();

/// A thread that has had accounts.
pub struct AccountedThread {
    pub id: VmThread,
    /// What it shares with others: a forked child has another one.
    pub process: &'static ProcessAccounts,
    pub accounts: GvlCell<ThreadAccounts>,
    /// Accounts whose objects were collected while they were open: of fibers that nobody resumes any more.
    given_up: Mutex<Vec<Opened>>,
    /// When it became ready to run after it gave the GVL up last, in ns on the monotonic clock; 0 if it
    /// isn't.
    pub ready_ns: AtomicU64,
    /// Whether the thread has ended.
    pub is_over: AtomicBool,
}

/// Makes the key. With the GVL, once.
pub fn make_key() {
    ACCOUNTED.make();
}

/// The present moment, on the calling thread, which has the GVL.
#[inline]
pub fn moment(process: &ProcessAccounts, gvl: &Gvl<'_>, now_ns: u64) -> Moment {
    Moment {
        now_ns,
        objects: counters::objects(gvl),
        waits_ns: process.waiters.up_to(now_ns).map(|it| it.ns),
    }
}

impl AccountedThread {
    /// Nobody will ask for an account any more. On any thread, in a collection, too.
    pub fn give_up(&self, opened: Opened) {
        // Only in a child that a thread without the GVL has forked somebody may have it for ever.
        if let Ok(mut given_up) = self.given_up.try_lock() {
            given_up.push(opened);
        }
        self.process.open.fetch_sub(1, SeqCst);
    }

    /// Opens an account of `fiber`, which has control; `with_ops`: it tells of the calls of ops, too.
    pub fn open(&self, gvl: &Gvl<'_>, fiber: FiberWord, with_ops: bool) -> Option<Opened> {
        let mut accounts = self.accounts.borrow(gvl)?;
        // Nothing that could collect is called while it is locked.
        if let Ok(mut given_up) = self.given_up.try_lock() {
            given_up.drain(..).for_each(|it| accounts.forget(&it));
        }
        self.process.open.fetch_add(1, SeqCst);
        self.ready_ns.store(0, Relaxed);
        let at = moment(self.process, gvl, clock::monotonic_ns());
        Some(accounts.open(fiber, with_ops, at))
    }
}

/// Gives the calling `thread` a place for its accounts, unless it has one.
pub fn get_or_begin(
    process: &'static ProcessAccounts,
    gvl: &Gvl<'_>,
    thread: RubyThread<'_>,
) -> Arc<AccountedThread> {
    if let Some(known) = known(process, gvl, thread) {
        // SAFETY: it is from `Arc::into_raw` below, and the key still owns it.
        return unsafe {
            Arc::increment_strong_count(ptr::from_ref(known));
            Arc::from_raw(ptr::from_ref(known))
        };
    }
    let new = Arc::new(AccountedThread {
        id: thread.id(),
        process,
        accounts: GvlCell::new(ThreadAccounts::default()),
        given_up: Mutex::default(),
        ready_ns: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    });
    // One that a forked child has inherited stays where it is.
    ACCOUNTED.set(thread, Arc::into_raw(Arc::clone(&new)).cast_mut().cast());
    new
}

/// The accounts of `thread`, if it has had some.
#[inline]
pub fn known<'a>(
    process: &'static ProcessAccounts,
    _: &'a Gvl<'_>,
    thread: RubyThread<'_>,
) -> Option<&'a AccountedThread> {
    // SAFETY: the thread's object is alive, and it doesn't end while another one has the GVL, nor itself.
    unsafe { found(process, thread) }
}

/// A call of an op has ended in the present fiber of `thread`, the calling one, which took so long. Outside
/// of hooks.
pub fn add_op(gvl: &Gvl<'_>, thread: RubyThread<'_>, name: &Arc<str>, time: OpTime) {
    // Its object may be made by this: before anything is borrowed, as that may collect.
    let fiber = thread.present_fiber();
    let accounted = process::present(gvl).and_then(|it| known(it, gvl, thread));
    if let Some(mut accounts) = accounted.and_then(|it| it.accounts.borrow(gvl)) {
        accounts.add_op(fiber, name, time);
    }
}

/// The accounts of `thread`, which has become ready to run. On any native thread, without the GVL.
///
/// # Safety
/// In READY: the VM holds on to the thread, which runs no more and not yet.
#[inline]
pub unsafe fn ready<'a>(
    process: &'static ProcessAccounts,
    thread: RubyThread<'_>,
) -> Option<&'a AccountedThread> {
    // SAFETY: the thread alone takes it away, and doesn't run. Threads that the VM knows stay at their places.
    unsafe { found(process, thread) }
}

/// What the key has for `thread`, if it is of this process.
///
/// # Safety
/// The thread's object is alive, and the thread doesn't end meanwhile.
#[inline]
unsafe fn found<'a>(
    process: &'static ProcessAccounts,
    thread: RubyThread<'_>,
) -> Option<&'a AccountedThread> {
    // SAFETY: null, or what the key owns, which it lets go of as the thread ends.
    let found = unsafe { ACCOUNTED.get(thread).cast::<AccountedThread>().as_ref() };
    found.filter(|it| ptr::eq(it.process, process))
}

/// The calling `thread` has ended.
///
/// # Safety
/// In EXITED: the thread runs no more, and its object is alive.
pub unsafe fn ended(thread: RubyThread<'_>) {
    let word = ACCOUNTED.get(thread).cast::<AccountedThread>();
    if !word.is_null() {
        ACCOUNTED.set(thread, ptr::null_mut());
        // SAFETY: from `Arc::into_raw` in `get_or_begin`; the key had it, and the thread alone takes it away.
        let accounted = unsafe { Arc::from_raw(word.cast_const()) };
        accounted.is_over.store(true, SeqCst);
    }
}

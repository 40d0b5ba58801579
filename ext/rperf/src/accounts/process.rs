//! What the accounts of this process share. Made with the first of them, and never freed: hooks may
//! be at work on it. A forked child makes its own.

use rperf_accounts::AccountTable;
use rperf_vm::{Gvl, GvlCell, Waiters};
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering::Acquire, Ordering::SeqCst,
};

static PRESENT: AtomicPtr<ProcessAccounts> = AtomicPtr::new(ptr::null_mut());

/// What all threads share.
pub struct ProcessAccounts {
    /// Who waits for the main Ractor's GVL.
    pub waiters: Waiters,
    /// The quantiles of those that have ended.
    pub table: GvlCell<AccountTable>,
    /// When the piece of garbage collection began that is at work, in ns on the monotonic clock; 0
    /// outside of one. Of the thread that has the GVL.
    pub collects_since: AtomicU64,
    /// How many accounts are open.
    pub open: AtomicUsize,
    /// The program has begun its accounts, and not ended them.
    pub is_on: AtomicBool,
    /// The program has ended its accounts: the hooks go with the last one.
    pub ends: AtomicBool,
    /// There are other Ractors.
    pub other_ractors: AtomicBool,
}

/// What this process shares, if it has had accounts. In hooks, too.
#[inline]
pub fn shared() -> Option<&'static ProcessAccounts> {
    // SAFETY: null, or from the Box that `begun` leaks.
    unsafe { PRESENT.load(Acquire).as_ref() }
}

/// What this process shares, if it has had accounts.
pub fn present(_: &Gvl<'_>) -> Option<&'static ProcessAccounts> {
    shared()
}

/// What this process shares; made by the first call.
pub fn begun(gvl: &Gvl<'_>) -> &'static ProcessAccounts {
    present(gvl).unwrap_or_else(|| {
        let new: &'static ProcessAccounts = Box::leak(Box::new(ProcessAccounts {
            waiters: Waiters::default(),
            table: GvlCell::new(AccountTable::default()),
            collects_since: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            is_on: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            other_ractors: AtomicBool::new(false),
        }));
        PRESENT.store(ptr::from_ref(new).cast_mut(), SeqCst);
        new
    })
}

/// Lets go of what the parent shares: another thread may have been at work on it. Async-signal-safe.
pub fn forget_in_child() {
    PRESENT.store(ptr::null_mut(), SeqCst);
}

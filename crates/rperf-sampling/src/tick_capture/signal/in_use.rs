//! What handlers of signals and the timer use while its owner may take it back: it is freed once the
//! last of them has left. Only atomics; all but [`Lent::take_back`], which waits, is async-signal-safe.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering::SeqCst, yield_now};
use std::ptr;

/// How many use something at the moment.
pub(super) struct Users(AtomicUsize);

impl Users {
    /// Nobody.
    pub(super) const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// A user has left: at the end of [`Lent::with`], or in the handler of a fault, from which that never
    /// returns.
    pub(super) fn leave(&self) {
        self.0.fetch_sub(1, SeqCst);
    }

    /// In a forked child: those of the parent aren't here.
    pub(super) fn forget(&self) {
        self.0.store(0, SeqCst);
    }

    /// Their number.
    pub(super) fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A place in which users find something.
pub(super) struct Lent<T>(AtomicPtr<T>);

impl<T> Lent<T> {
    /// Nothing is there.
    pub(super) const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether nothing is there.
    pub(super) fn is_empty(&self) -> bool {
        self.0.load(SeqCst).is_null()
    }

    /// Puts something in.
    ///
    /// # Safety
    /// It can be used until [`Lent::take_back`] has returned it, which counts the same users as each
    /// [`Lent::with`]; for ever, if [`Lent::take_at_once`] has.
    pub(super) unsafe fn put(&self, it: *mut T) {
        self.0.store(it, SeqCst);
    }

    /// Takes it out, or null. Who has found it before may use it still.
    pub(super) fn take_at_once(&self) -> *mut T {
        self.0.swap(ptr::null_mut(), SeqCst)
    }

    /// Takes it out, or null, and waits until nobody uses it.
    pub(super) fn take_back(&self, users: &Users) -> *mut T {
        let it = self.take_at_once();
        while users.count() != 0 {
            yield_now();
        }
        it
    }

    /// What is there, without being counted.
    ///
    /// # Safety
    /// The caller is one of the users, further up its stack.
    pub(super) unsafe fn get<'a>(&self) -> Option<&'a T> {
        // SAFETY: `take_back` doesn't return while the caller is counted.
        unsafe { self.0.load(SeqCst).as_ref() }
    }

    /// Calls `use_it` with what is there, as one of the users.
    #[inline]
    pub(super) fn with<R>(&self, users: &Users, use_it: impl FnOnce(&T) -> R) -> Option<R> {
        // SeqCst here and in `take_back`: either this sees that it is gone, or who takes it sees the user.
        users.0.fetch_add(1, SeqCst);
        // SAFETY: it is counted.
        let result = unsafe { self.get() }.map(use_it);
        users.leave();
        result
    }
}

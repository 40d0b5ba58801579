//! The GVL as a type. A [`Gvl`] is held by whoever holds the main Ractor's GVL; [`GvlCell`] and
//! [`SessionSlot`](crate::SessionSlot) ask for it. Used by the bridge on Ruby
//! threads: in hooks, in the sampling callback and in methods of the native API.
//!
//! Code that can run Ruby code takes `&mut Gvl`: other threads may get the GVL meanwhile, and
//! end the session. Everything that the GVL protects borrows the token, so none of it can be
//! kept over such a call. The compiler refuses the attempt:
//!
//! ```compile_fail,E0502
//! # use rperf_vm::{Gvl, SessionSlot};
//! # fn list_threads(_: &mut Gvl<'_>) {}
//! # static SESSION: SessionSlot<u32> = SessionSlot::empty();
//! # let mut gvl = unsafe { Gvl::assume_held() };
//! # SESSION.put(&gvl, Box::new(1));
//! let session = SESSION.get(&gvl);
//! list_threads(&mut gvl); // runs Ruby code
//! assert_eq!(session, Some(&1));
//! ```
//!
//! The session must be asked for again:
//!
//! ```
//! # use rperf_vm::{Gvl, SessionSlot};
//! # fn list_threads(_: &mut Gvl<'_>) {}
//! # static SESSION: SessionSlot<u32> = SessionSlot::empty();
//! # let mut gvl = unsafe { Gvl::assume_held() };
//! # SESSION.put(&gvl, Box::new(1));
//! list_threads(&mut gvl); // runs Ruby code
//! let session = SESSION.get(&gvl);
//! assert_eq!(session, Some(&1));
//! ```
//!
//! A borrowed cell can't be kept over such a call, either:
//!
//! ```compile_fail,E0502
//! # use rperf_vm::{Gvl, GvlCell};
//! # fn list_threads(_: &mut Gvl<'_>) {}
//! # let mut gvl = unsafe { Gvl::assume_held() };
//! # let cell = GvlCell::new(1);
//! let borrowed = cell.borrow(&gvl);
//! list_threads(&mut gvl);
//! drop(borrowed);
//! ```
//!
//! ```
//! # use rperf_vm::{Gvl, GvlCell};
//! # fn list_threads(_: &mut Gvl<'_>) {}
//! # let mut gvl = unsafe { Gvl::assume_held() };
//! # let cell = GvlCell::new(1);
//! let borrowed = cell.borrow(&gvl);
//! drop(borrowed);
//! list_threads(&mut gvl);
//! ```
//!
//! The token stays on its thread:
//!
//! ```compile_fail,E0277
//! # use rperf_vm::Gvl;
//! let gvl = unsafe { Gvl::assume_held() };
//! std::thread::scope(|scope| scope.spawn(|| drop(gvl)).join()).unwrap();
//! ```
//!
//! ```
//! # use rperf_vm::Gvl;
//! let gvl = unsafe { Gvl::assume_held() };
//! std::thread::scope(|scope| scope.spawn(|| ()).join()).unwrap();
//! drop(gvl);
//! ```

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Proof that the calling thread holds the main Ractor's GVL.
#[derive(Debug)]
pub struct Gvl<'g> {
    /// Neither `Send` nor `Sync`.
    held: PhantomData<*const &'g ()>,
}

impl<'g> Gvl<'g> {
    /// The token, for the head of a callback or a method.
    ///
    /// # Safety
    /// The calling thread holds the main Ractor's GVL for `'g`. It lets it go only while the
    /// token is lent with `&mut`, and has no other token of the same callback or method.
    #[inline]
    pub unsafe fn assume_held() -> Gvl<'g> {
        Gvl { held: PhantomData }
    }
}

/// Like a `RefCell` with exclusive borrows only, shared between the threads that hold the GVL
/// one after the other.
#[derive(Debug)]
pub struct GvlCell<T> {
    value: UnsafeCell<T>,
    borrowed: Cell<bool>,
}

// SAFETY: only the holder of the GVL gets at the value or the flag, and the GVL orders one
// holder's writes before the next one's reads. `peek` has a contract of its own.
unsafe impl<T: Send> Sync for GvlCell<T> {}

impl<T> GvlCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            borrowed: Cell::new(false),
        }
    }

    /// Borrows the value; `None` if it is borrowed further up the same stack.
    #[inline]
    pub fn borrow<'a>(&'a self, _: &'a Gvl<'_>) -> Option<GvlRef<'a, T>> {
        // Made only then: dropped, it would give the value back.
        (!self.borrowed.replace(true)).then(|| GvlRef {
            cell: self,
            stays_here: PhantomData,
        })
    }

    /// The value, borrowed or not.
    ///
    /// # Safety
    /// Nothing writes to the value meanwhile: for the garbage collector, which runs only where
    /// no borrower is at work.
    pub unsafe fn peek(&self) -> &T {
        // SAFETY: by this function's contract.
        unsafe { &*self.value.get() }
    }

    /// Where the value is, for the signal handler, which may never return: a flag that it sets
    /// could stay for ever.
    pub fn as_ptr(&self) -> *mut T {
        self.value.get()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// An exclusive borrow.
#[derive(Debug)]
pub struct GvlRef<'a, T> {
    cell: &'a GvlCell<T>,
    stays_here: PhantomData<*mut ()>,
}

impl<T> Deref for GvlRef<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the flag makes this the only borrow, and the GVL is held.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for GvlRef<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `&mut self` excludes other references from it.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for GvlRef<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell.borrowed.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_borrowed_once_at_a_time() {
        // SAFETY: the cell is this thread's alone.
        let gvl = unsafe { Gvl::assume_held() };
        let cell = GvlCell::new(vec![1]);
        let mut first = cell.borrow(&gvl).expect("nobody has borrowed it");
        for _ in 0..2 {
            assert!(cell.borrow(&gvl).is_none(), "further up the stack");
        }
        first.push(2);
        drop(first);
        assert_eq!(*cell.borrow(&gvl).expect("given back"), [1, 2]);
        assert_eq!(cell.into_inner(), [1, 2]);
    }
}

//! A cell for what the GVL protects. Only threads that hold the main Ractor's
//! GVL may use it; they exclude each other, so a plain flag finds re-entrance.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};

/// Like a `RefCell` with exclusive borrows only, shared between threads by the
/// rule that the borrower holds the main Ractor's GVL.
pub struct GvlCell<T> {
    value: UnsafeCell<T>,
    borrowed: Cell<bool>,
}

// SAFETY: `try_borrow`'s contract: only the holder of the main Ractor's GVL gets
// at the value or the flag, and the GVL orders one holder's writes before the
// next one's reads.
unsafe impl<T: Send> Sync for GvlCell<T> {}

impl<T> GvlCell<T> {
    pub fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            borrowed: Cell::new(false),
        }
    }

    /// Borrows the value; `None` if it is borrowed further up the same stack.
    ///
    /// # Safety
    /// The caller holds the main Ractor's GVL and keeps it for as long as it
    /// keeps the guard: it calls nothing of the VM that could release it.
    #[inline]
    pub unsafe fn try_borrow(&self) -> Option<GvlRef<'_, T>> {
        (!self.borrowed.replace(true)).then_some(GvlRef { cell: self })
    }

    /// The value, borrowed or not.
    ///
    /// # Safety
    /// Nothing writes to the value meanwhile: for the garbage collector, which
    /// runs only where no borrower is at work.
    pub unsafe fn peek(&self) -> &T {
        // SAFETY: by this function's contract.
        unsafe { &*self.value.get() }
    }

    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// An exclusive borrow.
pub struct GvlRef<'a, T> {
    cell: &'a GvlCell<T>,
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

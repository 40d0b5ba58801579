//! Threads seen for the first time: pushed by their hooks, on any thread, and taken in by the
//! holder of the GVL.

use crate::sync::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};
use std::ptr;

/// A list that is pushed to without locks. It is only ever taken as a whole, so no ABA problem
/// arises.
#[derive(Debug)]
pub struct NewList<T>(AtomicPtr<Node<T>>);

#[derive(Debug)]
struct Node<T> {
    /// From a Box.
    item: *mut T,
    next: *mut Node<T>,
}

// SAFETY: the list owns its items, and hands each to one thread.
unsafe impl<T: Send> Send for NewList<T> {}
// SAFETY: as for Send; no reference to an item comes from a shared list.
unsafe impl<T: Send> Sync for NewList<T> {}

impl<T> Default for NewList<T> {
    fn default() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }
}

impl<T> NewList<T> {
    /// Adds `item`; the list owns it from now on. Returns its address, which stays the same.
    pub fn push(&self, item: Box<T>) -> *mut T {
        let item = Box::into_raw(item);
        let mut head = self.0.load(Acquire);
        let node = Box::into_raw(Box::new(Node { item, next: head }));
        while let Err(newer) = self.0.compare_exchange_weak(head, node, AcqRel, Acquire) {
            head = newer;
            // SAFETY: this thread alone has the node until the exchange succeeds.
            unsafe { (*node).next = head };
        }
        item
    }

    /// Moves all items to `items`, the newest first.
    #[allow(clippy::vec_box, reason = "the items' addresses stay the same")]
    pub fn take_into(&self, items: &mut Vec<Box<T>>) {
        let mut head = self.0.swap(ptr::null_mut(), AcqRel);
        while !head.is_null() {
            // SAFETY: both are from `Box::into_raw` in `push`, and the swap gave this thread
            // the whole list.
            let (node, item) = unsafe { (Box::from_raw(head), Box::from_raw((*head).item)) };
            head = node.next;
            items.push(item);
        }
    }
}

impl<T> Drop for NewList<T> {
    fn drop(&mut self) {
        self.take_into(&mut Vec::new());
    }
}

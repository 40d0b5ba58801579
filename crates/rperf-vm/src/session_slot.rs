//! Where the running session is found: by hooks and methods of the bridge with the GVL, by some
//! hooks and the signal handler without it, by the garbage collector.

use crate::gvl::Gvl;
use crate::sync::{AtomicPtr, Ordering::Acquire, Ordering::SeqCst};
use std::ptr;

/// The running session, or nothing. The main Ractor's GVL is held whenever one is put in or
/// taken out, but where the VM ends and in a forked child.
#[derive(Debug)]
pub struct SessionSlot<T>(AtomicPtr<T>);

impl<T: Send + Sync> SessionSlot<T> {
    /// Without a session.
    pub const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether no session runs. Async-signal-safe.
    pub fn is_empty(&self) -> bool {
        self.0.load(Acquire).is_null()
    }

    /// The session, if one runs. It lives as long as the token isn't lent to code that may run
    /// Ruby code.
    #[inline]
    pub fn get<'a>(&'a self, _: &'a Gvl<'_>) -> Option<&'a T> {
        // SAFETY: sessions are freed with the GVL, by a caller whose token nobody else borrows;
        // this one's GVL is held, and its token borrowed.
        unsafe { self.get_unguarded() }
    }

    /// The session, if one runs. Async-signal-safe.
    ///
    /// # Safety
    /// The session is not freed as long as the result is used: in a hook or a signal handler
    /// that is removed before it is, or in a collection, which freeing it doesn't begin.
    #[inline]
    pub unsafe fn get_unguarded<'a>(&self) -> Option<&'a T> {
        // SAFETY: null, or from a Box that lives by this function's contract.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Puts `session` in, and returns it. One that was in there is leaked: its hooks may be at
    /// work.
    pub fn put<'a>(&'a self, _: &'a Gvl<'_>, session: Box<T>) -> &'a T {
        let session = Box::into_raw(session);
        self.0.store(session, SeqCst);
        // SAFETY: it was just made, and is freed as `get` says.
        unsafe { &*session }
    }

    /// Takes the session out. Nobody can have a reference to it: those with the GVL borrow a
    /// token.
    ///
    /// # Safety
    /// Nothing that found it by [`SessionSlot::get_unguarded`] is at work: hooks and handlers
    /// have been removed. No caller further up the stack has the session by a token of its own.
    pub unsafe fn take(&self, _: &mut Gvl<'_>) -> Option<Box<T>> {
        let session = self.0.swap(ptr::null_mut(), SeqCst);
        // SAFETY: from `put`, and the swap gives it to this caller alone.
        (!session.is_null()).then(|| unsafe { Box::from_raw(session) })
    }

    /// Lets go of the session, and returns it. It is never freed, as others may be at work on
    /// it: as the VM ends, and in a forked child. Async-signal-safe.
    pub fn abandon(&self) -> Option<&'static T> {
        // SAFETY: from `put`; out of the slot, nobody can free it.
        unsafe { self.0.swap(ptr::null_mut(), SeqCst).as_ref() }
    }
}

/// A part of the session in a slot, or nothing: hooks find it by one load. Noted when the session is
/// put in, and forgotten before it is taken out.
#[derive(Debug)]
pub struct SessionPart<T>(AtomicPtr<T>);

impl<T: Send + Sync> SessionPart<T> {
    /// No part.
    pub const fn none() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The part, if the session has it. It lives as what [`SessionSlot::get`] returns.
    #[inline]
    pub fn get<'a>(&'a self, _: &'a Gvl<'_>) -> Option<&'a T> {
        // SAFETY: it lives as long as the session, which isn't freed, as in `SessionSlot::get`.
        unsafe { self.get_unguarded() }
    }

    /// The part, if the session has it. Async-signal-safe.
    ///
    /// # Safety
    /// The conditions are those of [`SessionSlot::get_unguarded`].
    #[inline]
    pub unsafe fn get_unguarded<'a>(&self) -> Option<&'a T> {
        // SAFETY: null, or of a session that lives by this function's contract.
        unsafe { self.0.load(Acquire).as_ref() }
    }

    /// Notes the part of a session.
    ///
    /// # Safety
    /// The session is in its slot, and [`SessionPart::forget`] is called before it is taken out.
    pub unsafe fn note(&self, part: &T) {
        self.0.store(ptr::from_ref(part).cast_mut(), SeqCst);
    }

    /// Forgets it. Async-signal-safe.
    pub fn forget(&self) {
        self.0.store(ptr::null_mut(), SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_session_is_there_from_put_to_take() {
        // SAFETY: the slot is this thread's alone.
        let mut gvl = unsafe { Gvl::assume_held() };
        let (slot, session) = (SessionSlot::empty(), Arc::new(7));
        assert!(slot.is_empty() && slot.get(&gvl).is_none());
        assert_eq!(**slot.put(&gvl, Box::new(Arc::clone(&session))), 7);
        assert!(
            slot.get(&gvl)
                .is_some_and(|found| Arc::ptr_eq(found, &session))
        );
        // SAFETY: there are no hooks.
        let taken = unsafe { slot.take(&mut gvl) };
        assert!(taken.is_some_and(|taken| Arc::ptr_eq(&taken, &session)));
        assert_eq!(Arc::strong_count(&session), 1, "taken once");
        assert!(slot.get(&gvl).is_none());
        // SAFETY: as above.
        assert!(unsafe { slot.take(&mut gvl) }.is_none());
    }

    #[test]
    fn an_abandoned_session_is_out_of_the_slot_and_alive() {
        // SAFETY: the slot is this thread's alone.
        let gvl = unsafe { Gvl::assume_held() };
        let slot = SessionSlot::empty();
        slot.put(&gvl, Box::new(7));
        assert_eq!(slot.abandon(), Some(&7));
        assert_eq!((slot.abandon(), slot.get(&gvl)), (None, None));
    }

    #[test]
    fn a_part_is_there_from_note_to_forget() {
        // SAFETY: the slot is this thread's alone.
        let mut gvl = unsafe { Gvl::assume_held() };
        let (slot, part) = (SessionSlot::empty(), SessionPart::none());
        let session = slot.put(&gvl, Box::new([7, 8]));
        // SAFETY: it is forgotten below.
        unsafe { part.note(&session[1]) };
        assert_eq!(part.get(&gvl), Some(&8));
        part.forget();
        assert_eq!(part.get(&gvl), None);
        // SAFETY: there are no hooks.
        assert!(unsafe { slot.take(&mut gvl) }.is_some());
    }
}

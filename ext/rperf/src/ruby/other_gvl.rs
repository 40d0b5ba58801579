//! The GVLs of other Ractors than the main one, as a type. On their threads, in hooks and in the
//! signal handler.

/// Proof that the calling thread is of another Ractor than the main one, and has that one's GVL.
pub struct OtherGvl(());

impl OtherGvl {
    /// For the head of a callback.
    ///
    /// # Safety
    /// It is so until this is dropped.
    #[inline]
    pub unsafe fn assume_held() -> OtherGvl {
        OtherGvl(())
    }
}

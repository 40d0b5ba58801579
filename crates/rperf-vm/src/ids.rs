//! Frames, threads, fibers and sessions as the bridge names them. Hooks hand threads in, on any native
//! thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A frame as the VM gives it: an opaque word, here only compared and kept.
pub type FrameWord = usize;

/// A thread's object: an opaque word here, and never 0. Another thread may have it once this
/// one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmThread(pub usize);

/// A fiber's object: an opaque word here; 0 for a fiber that nobody has asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FiberWord(pub usize);

/// The kernel's number of a native thread, which isn't the thread's seq in the profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeId(pub u32);

impl NativeId {
    /// The number that no native thread has: the thread isn't known, or there is none.
    pub const NONE: NativeId = NativeId(0);

    /// Whether the native thread is known.
    #[inline]
    pub fn is_known(self) -> bool {
        self != NativeId::NONE
    }
}

/// No two sessions of a process have the same; none has 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId(pub u64);

impl SessionId {
    /// The id of a new session.
    pub fn next() -> SessionId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        SessionId(LAST.fetch_add(1, Relaxed) + 1)
    }
}

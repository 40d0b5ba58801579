//! A thread as the VM names it. Hooks hand it in, on any native thread.

/// A thread's object: an opaque word here, and never 0. Another thread may have it once this
/// one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmThread(pub usize);

//! What the VM tells of the whole process: on any thread, and in signal handlers.

use rperf_vm::clock;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

// SAFETY: as Ruby's headers declare them. They read numbers of the VM's, which has loaded this
// extension, take no lock and raise nothing.
unsafe extern "C" {
    safe fn rb_during_gc() -> c_int;
    safe fn rb_gc_count() -> usize;
    safe fn rb_reserved_fd_p(descriptor: c_int) -> c_int;
}

/// Whether garbage is being collected in the heap that the calling thread's Ractor has. That is so
/// through each collection for which all Ractors stop.
pub fn is_collecting() -> bool {
    rb_during_gc() != 0
}

/// How many collections have begun in that heap. Where Ractors have heaps of their own, one for which
/// all stop counts for the Ractor alone that has begun it.
pub fn collections() -> u64 {
    rb_gc_count() as u64
}

/// The process, told from all others that have its number at other times or elsewhere: by the time at which
/// this was first asked for. With the GVL.
pub fn token() -> String {
    static FIRST: AtomicU64 = AtomicU64::new(0);
    static OF: AtomicU32 = AtomicU32::new(0);
    let process = std::process::id();
    if OF.swap(process, Relaxed) != process {
        FIRST.store(clock::realtime_ns(), Relaxed);
    }
    format!("{process}-{:x}", FIRST.load(Relaxed))
}

/// Whether a file descriptor is one of Ruby's own, for its timer and the like.
pub fn is_reserved(descriptor: c_int) -> bool {
    rb_reserved_fd_p(descriptor) != 0
}

//! The atomics of the parts that `tests/loom` checks: it includes their files with loom's in
//! place of these.

pub use crate::clock::sleep;
pub use std::hint::spin_loop;
pub use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub use std::thread::yield_now;

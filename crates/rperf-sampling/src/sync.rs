//! The atomics of the parts that `tests/loom` checks: it includes their files with loom's in
//! place of these.

#[cfg(target_os = "linux")]
pub use std::sync::atomic::AtomicUsize;
pub use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering,
};
pub use std::thread::yield_now;

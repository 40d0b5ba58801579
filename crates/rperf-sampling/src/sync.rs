//! The atomics of the parts that `tests/loom.rs` checks: it includes their files with loom's in
//! place of these.

pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

//! Threads that let the GVL go at a safepoint, for the helper to get it. They would run, but the VM takes
//! them for threads that sleep.

use crate::without_gvl::try_without_gvl;
use rperf_vm::Gvl;
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By process, as a forked child has the parent's list, and by the addresses of their objects. Used
/// with the GVL, so nobody waits for the lock.
static THREADS: Mutex<Vec<(u32, usize)>> = Mutex::new(Vec::new());

fn threads() -> MutexGuard<'static, Vec<(u32, usize)>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `thread` is the calling one. If an interrupt is pending, it lets the GVL go by itself before long.
pub fn let_go(_: Gvl<'_>, thread: usize) {
    let process = process::id();
    let mut known = threads();
    known.retain(|it| it.0 == process);
    known.push((process, thread));
    drop(known);
    let _ = try_without_gvl(|| ());
    threads().retain(|it| *it != (process, thread));
}

/// Whether the thread does so just now.
pub fn has_let_go(_: &Gvl<'_>, thread: usize) -> bool {
    threads().contains(&(process::id(), thread))
}

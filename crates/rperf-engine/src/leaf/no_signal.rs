//! Systems on which threads can't be interrupted.

use crate::ticks::Ticks;
use std::io;
use std::sync::Arc;

/// Never made here.
#[derive(Debug)]
pub struct LeafSignal(std::convert::Infallible);

impl LeafSignal {
    /// Fails.
    pub fn install(_: Arc<Ticks>, _: fn(u64)) -> io::Result<LeafSignal> {
        let message = "this system can't interrupt threads at a tick";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

/// Does nothing.
pub fn forget_in_child() {}

/// Never interrupts anything.
pub fn interrupt(_: u32) -> bool {
    false
}

//! Systems on which threads can't be interrupted.

use super::TakeStacks;
use crate::timer::interruption::Interruption;
use crate::timer::other_holders::{Found, Interrupter};
use crate::timer::ticks::Ticks;
use rperf_vm::NativeId;
use std::io;
use std::sync::Arc;

/// Never made here.
#[derive(Debug)]
pub struct TickSignal(std::convert::Infallible);

impl TickSignal {
    /// Fails.
    pub fn install(_: Arc<Ticks>, _: Box<dyn TakeStacks>) -> io::Result<TickSignal> {
        let message = "this system can't interrupt threads at a tick";
        Err(io::Error::new(io::ErrorKind::Unsupported, message))
    }
}

/// Does nothing.
pub fn forget_in_child() {}

/// Never interrupts anything.
pub(crate) fn interrupt(_: NativeId, _: &Interruption) -> bool {
    false
}

/// Never interrupts anything.
pub const INTERRUPTER: Interrupter = Interrupter {
    look: |_| Found::Asleep,
    interrupt: |_, _| (),
};

/// None is ever at work.
pub(super) fn wait_for_reader() {}

/// None is ever read.
pub fn take_unreadable() -> u64 {
    0
}

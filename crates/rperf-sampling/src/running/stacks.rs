//! The stacks of a session's threads, as the VM tells them.

use crate::tick_capture::TickCapture;
use rperf_vm::{Backtrace, GvlCell};
use std::sync::Arc;

/// Where stacks are taken to: by who has the GVL, and by the signal handler.
#[derive(Debug)]
pub(super) struct Stacks {
    /// The stack that an event needs.
    pub(super) of_event: GvlCell<Backtrace>,
    /// The stacks that were taken at ticks.
    pub(super) at_ticks: Arc<TickCapture>,
}

impl Stacks {
    /// None yet.
    pub(super) fn new(at_ticks: TickCapture, with_lines: bool) -> Self {
        Self {
            of_event: GvlCell::new(Backtrace::new(with_lines)),
            at_ticks: Arc::new(at_ticks),
        }
    }

    /// Bytes held.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`].
    pub(super) unsafe fn memory(&self) -> usize {
        // SAFETY: by this function's contract.
        unsafe { self.of_event.peek().memory() + self.at_ticks.memory() }
    }
}

//! The capture of stacks at ticks begins and ends. With the GVL, outside of hooks.

use super::Session;
use super::stack_taker::StackTaker;
use crate::tick_capture::TickCapture;
use crate::tick_capture::signal::TickSignal;
use crate::timer::sources::TimerKind;
use rperf_vm::{TickVm, Unknown};
use std::io;
use std::sync::Arc;

impl Session {
    /// Stacks can't be taken at ticks, as they aren't of the form that is expected.
    pub fn lacks_tick_stacks(&mut self) {
        self.tick_stacks.lack_all();
    }

    /// Why stacks that are taken at ticks lack lines of compiled code that they should have, if they
    /// do.
    pub fn lacks_compiled_lines(&mut self, reason: Option<Unknown>) {
        self.tick_stacks.lack_compiled_lines(reason);
    }

    /// From now on the thread that holds the GVL is interrupted at each tick, and its stack taken
    /// then and there, by questions to the VM `V`, into `capture`. Fails if the program handles
    /// SIGURG itself, or if the timer may use no signals.
    pub fn begin_tick_capture<V: TickVm + 'static>(
        &mut self,
        capture: &Arc<TickCapture>,
    ) -> io::Result<()> {
        if self.config.timer == TimerKind::Sleep {
            let message = "the timer uses no signals";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        if !self.tick_stacks.are_taken() {
            let ticks = self.worker.shared_ticks();
            let stacks = StackTaker::<V>::new(Arc::clone(capture), Arc::clone(&ticks));
            let signal = TickSignal::install(ticks, Box::new(stacks))?;
            self.tick_stacks.begin(signal);
            self.worker.ticks().set_captures(true);
        }
        Ok(())
    }

    /// Ends what [`Session::begin_tick_capture`] began; afterwards no handler is at work.
    pub fn end_tick_capture(&mut self) {
        self.worker.ticks().set_captures(false);
        self.tick_stacks.end();
    }
}

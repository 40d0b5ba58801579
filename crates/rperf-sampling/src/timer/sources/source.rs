//! The interface of all sources: to the worker, which hosts one, and to the sampling
//! side, which arms it.

use std::fmt::Debug;
use std::time::Duration;

/// Asks for samples while some thread runs, and rests while none does. The thread that
/// opens it hosts it: the worker.
pub trait Source: Debug + Send + Sync {
    /// Ends a rest. Only for the caller to whom `Ticks::set_holder` said so; any thread,
    /// in hooks too.
    fn arm(&self);

    /// Begins a rest at `now`, as a thread has given the GVL up and nobody has it, where that is cheaper
    /// than the next tick. Any thread, in hooks.
    fn stop_ticks(&self, _now: u64) {}

    /// Does what is due on the worker. Returns how long the worker may sleep before it
    /// asks again, or `None` until it is woken. On the worker only.
    fn poll(&self) -> Option<Duration>;

    /// Ends it for good. On the worker only, once.
    fn stop(&self);
}

//! Sampling without Ruby: the accounting of threads, the capture and the recording of
//! stacks, the buffers, the worker thread and the timer.
//!
//! The bridge (`ext/rperf`) hands the VM's events to [`RunningSession`], and does what they
//! leave to do ([`FollowUp`]); tests do so with a simulated VM. Time is CLOCK_MONOTONIC or CPU
//! time in ns. This crate calls no Ruby: a frame or a thread is an opaque word of [`rperf_vm`].

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod accounting;
mod collect;
mod config;
mod counters;
pub mod objects;
mod ractors;
mod recording;
mod running;
mod session;
mod sync;
pub mod threads;
mod tick_capture;
mod timer;
mod values;

pub use accounting::{Accounting, Due, Dues};
pub use collect::messages::WorkerEnded;
pub use collect::sample::{Sample, SampleSums, SumLimits};
pub use collect::shared::SharedTable;
pub use config::{DEFAULT_MAX_NODES, Missing, SessionConfig, StartError, StartOptions};
pub use counters::{Capture, CaptureCounters, SessionCounters};
pub use ractors::{OtherThread, ThreadSlot};
pub use recording::{NotedLabels, Position, SampleStack};
pub use rperf_model::Mode;
pub use running::{
    EveryThread, FollowUp, GvlState, Learned, NewFrames, OffGvl, RunningSession, Sections, Wanted,
    WantedStack,
};
pub use session::Session;
pub use session::budget::{Intervals, NO_LIMIT as NO_OVERHEAD_LIMIT};
pub use session::snapshot::{Snapshot, Taken};
pub use tick_capture::at_work::{
    AtWork, HandlerOff, may_take_stack, other_ractors, reset_at_work, set_other_ractors,
};
pub use tick_capture::{TickCapture, TickLog, TickTimes};
pub use timer::pace::Pace;
pub use timer::sources::TimerKind;
#[cfg(target_os = "linux")]
pub use timer::sources::{default_signal, is_usable_signal};
pub use timer::ticks::Ticks;
pub use values::{Times, Values};

/// In a forked child, which has no worker: lets go of all signals, so that a session
/// of its own can take them. Async-signal-safe.
pub fn forget_in_child() {
    tick_capture::signal::forget_in_child();
    timer::sources::forget_in_child();
}

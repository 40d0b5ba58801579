//! Sampling without Ruby: the accounting of threads, the capture and the recording of
//! stacks, the buffers, the worker thread and the timer.
//!
//! The bridge (`ext/rperf`) hands the VM's events to [`RunningSession`], and does what they
//! leave to do ([`FollowUp`]); tests do so with a simulated VM. Time is CLOCK_MONOTONIC or CPU
//! time in ns. This crate calls no Ruby: a frame or a thread is an opaque word of [`rperf_vm`].

mod accounting;
mod budget;
mod buffer;
mod calm;
mod config;
mod counters;
mod endpoint;
mod idle_times;
mod interruption;
mod messages;
mod mode;
mod other_holders;
mod pace;
mod profile_builder;
mod ractors;
mod recording;
mod renewal;
mod running;
mod sample;
mod session;
mod snapshot;
mod sources;
mod sync;
pub mod threads;
mod tick_capture;
mod ticks;
mod timer_state;
mod values;
mod watch;
mod worker;

pub use accounting::{Accounting, Due, Dues};
pub use budget::{Intervals, NO_LIMIT as NO_OVERHEAD_LIMIT};
pub use config::{DEFAULT_MAX_NODES, Missing, SessionConfig, StartError, StartOptions};
pub use counters::{Capture, CaptureCounters, SessionCounters};
pub use endpoint::endpoint_path;
pub use messages::WorkerEnded;
pub use mode::Mode;
pub use pace::Pace;
pub use ractors::{OtherThread, ThreadSlot};
pub use recording::{NotedLabels, Position, SampleStack};
pub use running::{
    EveryThread, FollowUp, GvlState, Learned, NewFrames, OffGvl, RunningSession, Sections, Wanted,
    WantedStack,
};
pub use sample::{Sample, SampleSums, SumLimits};
pub use session::Session;
pub use snapshot::{Snapshot, Taken};
pub use sources::TimerKind;
#[cfg(target_os = "linux")]
pub use sources::{default_signal, is_usable_signal};
pub use tick_capture::at_work::{
    AtWork, HandlerOff, may_take_stack, other_ractors, reset_at_work, set_other_ractors,
};
pub use tick_capture::{TickCapture, TickLog, TickTimes};
pub use ticks::Ticks;
pub use values::Values;
pub use watch::SharedTable;

/// In a forked child, which has no worker: lets go of all signals, so that a session
/// of its own can take them. Async-signal-safe.
pub fn forget_in_child() {
    tick_capture::signal::forget_in_child();
    sources::forget_in_child();
}

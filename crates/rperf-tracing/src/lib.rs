//! Exact tracing without Ruby: each call of a program is counted in a call tree, and the time
//! between two events goes to the frame that was innermost. The bridge hands the VM's events to
//! [`Tracer`] with the time at which they came, under the GVL; tests do so with a made-up VM.
//!
//! The VM tells of most calls and returns, but not of all. How deep its stack is, it says exactly
//! at each event, and that keeps our stack in step with its own.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod clock;
mod cost;
mod event;
mod fiber;
mod profile;
mod targeted;
mod timed_calls;
mod tracer;
mod tree;

pub use clock::timekeeper::Timekeeper;
pub use clock::{ClockReading, TraceClock};
pub use cost::{Bodies, Calibration, Costs, LoopTimes, PairCost};
pub use event::{Call, CallKind, TraceVm};
pub use profile::TraceSnapshot;
pub use rperf_model::TraceLevel;
pub use targeted::{TargetedSnapshot, TargetedTracer};
pub use tracer::Tracer;
pub use tree::TracedFrame;
pub use tree::folds::Exclusion;
pub use tree::threads::ThreadNumber;

#[cfg(test)]
mod tests;

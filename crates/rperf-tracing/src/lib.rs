//! Exact tracing without Ruby: each call of a program is counted in a call tree, and the time
//! between two events goes to the frame that was innermost. The bridge hands the VM's events to
//! [`Tracer`] with the time at which they came, under the GVL; tests do so with a made-up VM.
//!
//! The VM tells of most calls and returns, but not of all. How deep its stack is, it says exactly
//! at each event, and that keeps our stack in step with its own.

mod calls;
mod check;
mod clock;
mod compare;
mod cost;
mod counts;
mod cpu_events;
mod cpu_times;
mod event;
mod fiber;
mod folds;
mod follow;
mod label_sets;
mod labelled;
mod latencies;
mod objects;
mod open_calls;
mod paused;
mod pauses;
mod profile;
mod rows;
mod spans;
mod state_times;
mod targeted;
mod thread;
mod thread_events;
mod timed_calls;
mod timekeeper;
mod tracer;
mod tree;
mod uncovered;

pub use clock::{ClockReading, TraceClock};
pub use cost::{Bodies, Calibration, Costs, LoopTimes, PairCost};
pub use event::{Call, CallKind, TraceLevel, TraceVm};
pub use folds::Exclusion;
pub use profile::TraceSnapshot;
pub use targeted::{CallColumns, TargetedSnapshot, TargetedTracer};
pub use timekeeper::Timekeeper;
pub use tracer::{ThreadNumber, Tracer};
pub use tree::TracedFrame;

#[cfg(test)]
mod tests;

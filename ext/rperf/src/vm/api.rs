//! The methods of `Rperf::Native` that belong to sampling.

mod calibration;
mod description;
mod endpoint;
mod labels;
mod measure;
pub mod methods;
mod scope;
mod section;
mod snapshot;
mod start;
mod taken_profile;
mod trace;
mod tracing;

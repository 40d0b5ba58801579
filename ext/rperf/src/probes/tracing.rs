//! The probes of a session that traces, or has chosen methods.

pub mod calls;
pub mod gc;
pub mod labels;
pub mod objects;
pub mod targets;
pub mod thread;

//! The probes of a session that samples, and the sampling callback.

pub mod countdown;
pub mod ended_ractors;
pub mod fiber;
pub mod gc;
pub mod gc_cost;
pub mod objects;
pub mod objects_in_use;
pub mod other_ractor;
pub mod sampled_objects;
pub mod sampling_job;
pub mod thread;
pub mod time_slice;

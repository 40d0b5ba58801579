//! The stream of the graph of a program's objects: the answer to `/v1/heap`. Written in the program's forked child;
//! read by `rperf-heap`, which takes it for hostile.

pub mod kind;
pub mod sampled;
pub mod tags;
pub mod write;

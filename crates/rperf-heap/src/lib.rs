//! The graph of a program's objects: the reader of its stream, who dominates whom, the paths on which
//! objects are held, and what is told of all that. Any thread.
//!
//! The program sends the graph (`rperf_protocol::heap`). All of this is for the command, which may be root, while the
//! program may be hostile.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod above;
pub mod answer;
pub mod dominators;
pub mod file;
pub mod graph;
mod holder_rows;
mod holders;
mod merged;
mod names;
mod paths;
pub mod read;
mod sites;
mod tree;

#[cfg(test)]
mod test_graphs;

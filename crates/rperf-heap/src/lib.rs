//! The graph of a program's objects: the stream in which it comes, who dominates whom, the paths on which
//! objects are held, and what is told of all that. Any thread.
//!
//! The program sends the graph ([`mod@write`]); all else is for the command, which may be root, while the
//! program may be hostile.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod above;
pub mod answer;
pub mod dominators;
pub mod file;
pub mod graph;
mod holders;
pub mod kind;
mod merged;
mod names;
mod paths;
pub mod read;
pub mod sampled;
mod sites;
mod tags;
mod tree;
pub mod write;

#[cfg(test)]
mod test_graphs;

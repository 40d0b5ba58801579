//! Samples of what the engine finds due, and the names of their frames.

pub mod epoch;
pub mod resolve;
pub mod sample;

//! Samples of what the engine finds due, and the names of an epoch's frames.

pub mod epoch;
pub mod sample;

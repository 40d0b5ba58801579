//! From captured frames to names.

pub mod epoch;
pub mod resolve;

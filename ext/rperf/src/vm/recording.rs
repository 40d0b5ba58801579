//! From events to samples: stacks are taken, and threads accounted.

pub mod capture;
pub mod epoch;
pub mod every_thread;
pub mod resolve;
pub mod roots;
pub mod running_thread;
pub mod tick_samples;

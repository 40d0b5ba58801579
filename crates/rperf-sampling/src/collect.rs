//! Samples on their way: the buffer, the messages to the worker, its sums, the table for those who
//! watch, and the profile that is made of them.

pub(crate) mod buffer;
pub(crate) mod holders;
pub(crate) mod kept_requests;
pub(crate) mod messages;
pub(crate) mod open_requests;
pub(crate) mod packed_labels;
pub(crate) mod profile_builder;
pub(crate) mod sample;
pub(crate) mod sample_key;
pub(crate) mod shared;

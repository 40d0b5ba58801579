//! Requests: why some are slow, what they do by name, and what they wait for. Any thread.

pub(crate) mod find;
pub(crate) mod ops;
pub(crate) mod waits;
pub(crate) mod why;

//! The rows of a profile: their keys, their tags, their states and their ops. Any thread.

pub(crate) mod in_ops;
pub(crate) mod keys;
pub(crate) mod states;
pub(crate) mod tags;

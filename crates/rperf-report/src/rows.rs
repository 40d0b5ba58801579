//! The rows of a profile: their keys, their tags, their states, threads and ops. Any thread.

pub(crate) mod in_ops;
pub(crate) mod keys;
pub(crate) mod states;
pub(crate) mod tags;
pub(crate) mod threads;

//! What people read about a session when it has ended: the page of `rperf stat`, and the lines of
//! `-v`. Any thread.

pub mod stat;
pub mod verbose;

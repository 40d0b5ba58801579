//! Accounts of requests and jobs: the VM's hooks that they need, the threads that have some, and the
//! Ruby object. They are apart from the running session, which may come and go meanwhile.

pub mod hooks;
pub mod object;
pub mod process;
pub mod threads;

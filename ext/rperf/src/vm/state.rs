//! What the rest of sampling stands on: the running session and the way to it, the roots of its
//! frames, and label sets as the VM has them.

pub mod label_set;
pub mod roots;
pub mod session;

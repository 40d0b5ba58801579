//! The traced session, and the roots of its frames.

pub mod roots;
pub mod session;

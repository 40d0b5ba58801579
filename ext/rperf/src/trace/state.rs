//! The traced session, the chosen methods of a sampling session, and the roots of their frames.

pub mod roots;
pub mod session;
pub mod targets;

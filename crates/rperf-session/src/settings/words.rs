//! Words that are values of settings. Used by `table` and by those who read values of it; any
//! thread.

use rperf_model::{Mode, SessionMode};

/// A stack is taken at the tick.
pub const TICK: &str = "tick";
/// A stack is taken at a safepoint.
pub const SAFEPOINT: &str = "safepoint";

/// The mode in which calls are traced.
pub const TRACE: &str = SessionMode::Trace.name();
/// The mode in which threads wait.
pub const WALL: &str = Mode::Wall.name();
/// Which calls: methods of C, too; or counted only.
pub const RUBY: &str = "ruby";
pub const ALL_CALLS: &str = "all";
pub const COUNT: &str = "count";
pub const COUNT_ALL: &str = "count-all";
/// By which clock.
pub const AUTO: &str = "auto";
pub const MONOTONIC: &str = "monotonic";

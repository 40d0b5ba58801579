//! Words that are values of settings. Used by `table` and by those who read values of it; any
//! thread.

/// A stack is taken at the tick.
pub const TICK: &str = "tick";
/// A stack is taken at a safepoint.
pub const SAFEPOINT: &str = "safepoint";

pub use rperf_model::TRACE;
/// Which calls: methods of C, too; or counted only.
pub const RUBY: &str = "ruby";
pub const ALL_CALLS: &str = "all";
pub const COUNT: &str = "count";
pub const COUNT_ALL: &str = "count-all";
/// By which clock.
pub const AUTO: &str = "auto";
pub const MONOTONIC: &str = "monotonic";

/// The mode in which threads wait.
pub const WALL: &str = rperf_model::OwnColumn::Wall.name();

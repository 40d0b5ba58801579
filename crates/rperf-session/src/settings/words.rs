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
/// What can be measured beside times.
pub const ALLOC: &str = "alloc";
/// Some of the objects, by their bytes.
pub const ALLOC_SAMPLED: &str = "alloc=sampled";
/// Whom threads wait for that want the GVL.
pub const BLAME: &str = "blame";
pub const CPU: &str = rperf_model::OwnColumn::Cpu.name();
/// What objects cost the garbage collector.
pub const GC_COST: &str = rperf_model::OwnColumn::GcCost.name();
/// Objects that stay, and who has made them.
pub const HEAP: &str = "heap";
pub const LATENCY: &str = "latency";
/// Queries, requests to other servers, and what else has a name while it lasts.
pub const OPS: &str = "ops";
pub const REQUESTS: &str = "requests";

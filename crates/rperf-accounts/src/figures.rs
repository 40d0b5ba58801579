//! The figures of an account: what a request or a job took, value by value.

use crate::Sums;

/// What an account says. Its states add up to the wall time, to the ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// From its beginning to its end.
    pub wall_ns: u64,
    /// What its fiber did.
    pub sums: Sums,
    /// Other fibers of the thread had control.
    pub suspended_ns: u64,
    /// The CPU time of its thread, of whichever fiber; `None` if it isn't known.
    pub cpu_ns: Option<u64>,
    /// There was no other Ractor: objects and blame are its own.
    pub is_alone: bool,
}

/// A value of an account that has quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// See [`Figures::wall_ns`].
    Wall,
    /// See [`Sums::running_ns`].
    Running,
    /// See [`Sums::gvl_wait_ns`].
    GvlWait,
    /// See [`Sums::blocked_ns`].
    Blocked,
    /// See [`Sums::gc_ns`].
    Gc,
    /// See [`Figures::suspended_ns`].
    Suspended,
    /// See [`Sums::gvl_blame_ns`].
    GvlBlame,
    /// See [`Sums::allocated_objects`].
    AllocatedObjects,
}

impl Value {
    /// All values.
    pub const ALL: [Value; 8] = [
        Value::Wall,
        Value::Running,
        Value::GvlWait,
        Value::Blocked,
        Value::Gc,
        Value::Suspended,
        Value::GvlBlame,
        Value::AllocatedObjects,
    ];

    /// Its name in Ruby.
    pub fn name(self) -> &'static str {
        match self {
            Value::Wall => "wall_ns",
            Value::Running => "running_ns",
            Value::GvlWait => "gvl_wait_ns",
            Value::Blocked => "blocked_ns",
            Value::Gc => "gc_ns",
            Value::Suspended => "suspended_ns",
            Value::GvlBlame => "gvl_blame_ns",
            Value::AllocatedObjects => "allocated_objects",
        }
    }
}

impl Figures {
    /// The figure that belongs to `value`.
    pub fn value(&self, value: Value) -> u64 {
        match value {
            Value::Wall => self.wall_ns,
            Value::Running => self.sums.running_ns,
            Value::GvlWait => self.sums.gvl_wait_ns,
            Value::Blocked => self.sums.blocked_ns,
            Value::Gc => self.sums.gc_ns,
            Value::Suspended => self.suspended_ns,
            Value::GvlBlame => self.sums.gvl_blame_ns,
            Value::AllocatedObjects => self.sums.allocated_objects,
        }
    }
}

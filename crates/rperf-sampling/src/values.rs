//! What one sample carries, and what sums of samples add up. Used on the sampling side
//! under the GVL and by the worker.

/// A count and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Samples taken.
    pub count: u64,
    /// Wall time in ns.
    pub wall_ns: u64,
    /// CPU time in ns. In cpu mode that of GC is its wall time: GC time is wall time
    /// always.
    pub cpu_ns: u64,
    /// Time in ns that other threads have waited for the GVL while this one had it, where that is
    /// measured.
    pub blame_ns: u64,
    /// Time in ns for which a request has waited for the GVL while this stack, mostly another thread's,
    /// had it, where that is measured.
    pub waited_for_ns: u64,
}

impl Values {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: Values) {
        self.count = self.count.saturating_add(other.count);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.blame_ns = self.blame_ns.saturating_add(other.blame_ns);
        self.waited_for_ns = self.waited_for_ns.saturating_add(other.waited_for_ns);
    }

    /// Whether all values are 0.
    pub fn is_zero(&self) -> bool {
        *self == Values::default()
    }
}

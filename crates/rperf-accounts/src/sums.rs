//! What a thread has done in all, in its states: sums that only grow, whose differences are accounts.

/// The sums of one thread, since it has accounts. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// The time for which the thread had the GVL and collected no garbage.
    pub running_ns: u64,
    /// The time for which the thread was ready to run, and waited for the GVL.
    pub gvl_wait_ns: u64,
    /// The time for which the thread was off the GVL and not ready to run: it slept, or waited for
    /// I/O or another thread.
    pub blocked_ns: u64,
    /// The time for which the thread collected garbage.
    pub gc_ns: u64,
    /// The time for which others waited for the GVL while it had it; two that wait count twice.
    pub gvl_blame_ns: u64,
    /// How often it got the GVL back.
    pub hand_overs: u64,
    /// Objects that it made.
    pub allocated_objects: u64,
}

impl Sums {
    /// The time in all states.
    pub fn wall_ns(&self) -> u64 {
        self.running_ns + self.gvl_wait_ns + self.blocked_ns + self.gc_ns
    }

    /// What came after `earlier` sums.
    pub fn since(&self, earlier: &Sums) -> Sums {
        self.with(earlier, u64::saturating_sub)
    }

    /// Both together.
    pub fn plus(&self, other: &Sums) -> Sums {
        self.with(other, u64::saturating_add)
    }

    fn with(&self, other: &Sums, of: impl Fn(u64, u64) -> u64) -> Sums {
        Sums {
            running_ns: of(self.running_ns, other.running_ns),
            gvl_wait_ns: of(self.gvl_wait_ns, other.gvl_wait_ns),
            blocked_ns: of(self.blocked_ns, other.blocked_ns),
            gc_ns: of(self.gc_ns, other.gc_ns),
            gvl_blame_ns: of(self.gvl_blame_ns, other.gvl_blame_ns),
            hand_overs: of(self.hand_overs, other.hand_overs),
            allocated_objects: of(self.allocated_objects, other.allocated_objects),
        }
    }
}

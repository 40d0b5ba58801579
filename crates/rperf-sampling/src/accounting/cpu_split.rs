//! What a thread's CPU time was used for. Pure arithmetic on readings of its CPU
//! clock and on wall times.

/// Splits CPU time into what was used with the GVL and without: with the GVL
/// a thread can't use more CPU time than wall time passes.
#[derive(Debug, Default)]
pub(super) struct CpuSplit {
    /// The CPU clock when it was last read.
    base: u64,
    /// Wall time with the GVL and without it, and CPU time in GC since then.
    pub(super) with_gvl: u64,
    pub(super) without_gvl: u64,
    pub(super) in_gc: u64,
    /// CPU time without the GVL that no sample has taken yet (wall mode).
    pub(super) pending_off_gvl: u64,
    /// CPU time of collections that was counted as running time before: the clock had been
    /// estimated to be ahead of where it stands.
    gc_debt: u64,
}

impl CpuSplit {
    /// For a thread whose CPU clock stands at `base`.
    pub(super) fn new(base: u64) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// Takes a new reading: returns CPU time (with the GVL and outside GC,
    /// without the GVL) since the last one.
    pub(super) fn read(&mut self, now: u64) -> (u64, u64) {
        // A clock that was estimated may be ahead of the real one: it waits for it.
        let now = now.max(self.base);
        let used = now - self.base;
        let off_gvl = used.saturating_sub(self.with_gvl).min(self.without_gvl);
        let with_gvl = used - off_gvl;
        let running = with_gvl.saturating_sub(self.in_gc);
        *self = CpuSplit {
            base: now,
            pending_off_gvl: self.pending_off_gvl,
            gc_debt: self.gc_debt + self.in_gc.saturating_sub(with_gvl),
            ..Default::default()
        };
        (running, off_gvl)
    }

    /// The CPU clock, were all time with the GVL CPU time: for when it can't be read.
    pub(super) fn estimate(&self) -> u64 {
        self.base + self.with_gvl
    }

    /// Whether the thread had the GVL since the clock was last read.
    pub(super) fn had_gvl(&self) -> bool {
        self.with_gvl > 0
    }

    /// The clock that stands at `now` is another one than before. Returns the CPU
    /// time with the GVL since the last reading, outside of GC, which is estimated.
    pub(super) fn change_clock(&mut self, now: u64) -> u64 {
        let (running, _) = self.read(self.estimate());
        self.base = now;
        running
    }

    /// What is left of `claim`, CPU time that is to be counted, after paying back the debt.
    pub(super) fn repay(&mut self, claim: u64) -> u64 {
        let repaid = claim.min(self.gc_debt);
        self.gc_debt -= repaid;
        claim - repaid
    }
}

//! When the thread's CPU clock is worth a reading as it gets the GVL and gives it up, and what is done
//! with the reading.

use super::{Accounting, Activity};
use crate::Mode;

/// Divides an interval: after less time than such a part with the GVL, the CPU clock isn't read as the
/// GVL is given up.
const CLOCK_PART: u64 = 8;

/// Divides an interval likewise where the CPU clock was read as the thread got the GVL.
const SHORT_CLOCK_PART: u64 = 50;

impl Accounting {
    pub(super) fn take_cpu(&mut self, now: u64) {
        let (running, off_gvl) = self.cpu.read(now);
        self.running.add_cpu(running);
        self.cpu.pending_off_gvl += off_gvl;
    }

    /// [`Accounting::resumed`] has read the CPU clock, up to `now`. In cpu mode what the hook took until
    /// then is CPU time of the time without the GVL, which ends there: ticks have no part in the hook,
    /// and its stack is the one that the thread was off the GVL at.
    pub(crate) fn clock_was_read(&mut self, now: u64) {
        if let (Mode::Cpu, Activity::Running { .. }) = (self.mode, self.activity) {
            self.activity = Activity::Running {
                since: now,
                resumed: now,
            };
        }
    }

    /// Whether the CPU clock is worth a reading as the thread gives the GVL up at `now`, in cpu mode.
    /// Time in which it waited for a CPU, or a virtual machine did, is no CPU time: as long as that is
    /// with the GVL, CPU time without it would hide there.
    #[inline]
    pub(crate) fn is_cpu_due(&self, now: u64) -> bool {
        let Activity::Running { since, .. } = self.activity else {
            return false;
        };
        if self.mode == Mode::Wall {
            return false;
        }
        let with_gvl = self.cpu.with_gvl + now.saturating_sub(since);
        // Whoever was away for long will be again, and can pay for it.
        let part = if self.cpu.without_gvl == 0 {
            SHORT_CLOCK_PART
        } else {
            CLOCK_PART
        };
        with_gvl > self.axes.tick_interval() / part
    }

    /// The CPU clock of the thread, which doesn't run any more, stands at `cpu`.
    pub(crate) fn read_cpu(&mut self, cpu: u64) {
        self.take_cpu(cpu);
    }

    /// The thread's CPU clock, were all time with the GVL CPU time.
    pub(crate) fn cpu_estimate(&self) -> u64 {
        self.cpu.estimate()
    }
}

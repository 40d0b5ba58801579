//! Garbage collection on a thread: its time is taken out of running time, and has axes of its own.

use super::{Accounting, Activity, Dues};
use crate::{Mode, Times};
use rperf_model::State;
use rperf_vm::{GcTime, GcWork};

impl Accounting {
    /// A piece of GC work has ended on this thread; `tick` is the last tick there
    /// was. Its time is taken out of the running time.
    pub fn collected(&mut self, work: GcWork, tick: u64) -> Dues {
        let mut dues = Dues::default();
        let GcWork {
            enter_ns,
            exit_ns,
            cpu_ns,
            marking,
            cause,
            ..
        } = work;
        self.gc.cause = cause;
        let length = exit_ns.saturating_sub(enter_ns);
        if let Activity::Off { since, .. } = self.activity {
            // It runs though no event said so.
            let estimate = self.cpu.estimate();
            self.off_gvl(since, 0, enter_ns, || estimate, &mut dues);
            self.activity = Activity::Running {
                since: enter_ns.max(since),
                resumed: enter_ns.max(since),
            };
        }
        if let Activity::Running { .. } = self.activity {
            self.running.add_gc(length);
            self.cpu.in_gc += cpu_ns;
            self.ticks.collected(&work, length, tick);
        }
        let marking = GcTime {
            wall_ns: marking.wall_ns.min(length),
            cpu_ns: marking.cpu_ns.min(cpu_ns),
        };
        let sweeping = GcTime {
            wall_ns: length - marking.wall_ns,
            cpu_ns: cpu_ns - marking.cpu_ns,
        };
        let marked = self.advance_gc(State::GcMarking, marking);
        let swept = self.advance_gc(State::GcSweeping, sweeping);
        for (state, weight) in [(State::GcMarking, marked), (State::GcSweeping, swept)] {
            if weight > 0 {
                let (settled, weight) = self.axes.settle(state, weight);
                let times = self.gc_times(state, weight);
                self.add(state, Times::of(self.mode, settled), times, &mut dues);
            }
        }
        dues.set_cause(cause);
        dues
    }

    /// Moves an axis of GC time: of wall time, or in cpu mode of CPU time. Returns the weight
    /// that is due.
    fn advance_gc(&mut self, state: State, time: GcTime) -> u64 {
        let cpu_ns = self.cpu.repay(time.cpu_ns);
        let length = match self.mode {
            Mode::Wall => {
                self.gc.add_cpu(state, cpu_ns);
                time.wall_ns
            }
            Mode::Cpu => cpu_ns,
        };
        self.axes.advance_gc(state, length, &self.points)
    }

    /// A weight of GC time in `state`, with what waits for one.
    pub(super) fn gc_times(&mut self, state: State, weight: u64) -> Times {
        let mut times = Times::of(self.mode, weight);
        times.cpu_ns += self.gc.take_cpu(state);
        times.blame_ns = self.blame.take(state);
        times
    }
}

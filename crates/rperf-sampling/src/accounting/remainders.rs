//! What no sample has taken by the end of a session, of a part of it, or of a thread.

use super::{Accounting, Dues};
use crate::{Mode, Times};
use rperf_model::State;

impl Accounting {
    /// Makes all remainders due.
    pub(super) fn add_remainders(&mut self, dues: &mut Dues) {
        let without_gvl = self.remainder_without_gvl();
        for (state, times) in self.remainders() {
            dues.add_remainder(state, times, self.last_point(state).is_some());
        }
        dues.set_cause(self.gc.cause);
        let blame_ns = self.blame.take(State::Running);
        if blame_ns > 0 {
            let times = Times {
                blame_ns,
                ..Times::default()
            };
            let has_place = self.points.for_blame().is_some();
            dues.add_remainder(State::Running, times, has_place);
        }
        if without_gvl > 0 {
            let has_place = self.points.without_gvl().is_some();
            dues.add_remainder_without_gvl(Times::of(Mode::Cpu, without_gvl), has_place);
        }
    }

    /// Takes the CPU time without the GVL that no sample has taken. It isn't for the stack of the
    /// last tick.
    fn remainder_without_gvl(&mut self) -> u64 {
        if self.mode == Mode::Wall {
            return 0;
        }
        let pending = std::mem::take(&mut self.cpu.pending_off_gvl);
        let cpu_ns = pending + self.axes.flush(State::Running);
        self.cpu.repay(cpu_ns)
    }

    /// The thread has ended; `cpu` is its CPU clock at the end, if known. What is due
    /// goes to its last stacks, or to the unattributed time if it had none.
    pub fn finish(&mut self, cpu: Option<u64>) -> Dues {
        let mut dues = Dues::default();
        self.take_cpu(cpu.unwrap_or_else(|| self.cpu.estimate()));
        self.add_remainders(&mut dues);
        dues
    }

    /// Takes what no sample has taken, by state.
    fn remainders(&mut self) -> impl Iterator<Item = (State, Times)> + use<> {
        let mut running = self.running.take();
        let off_gvl_cpu = std::mem::take(&mut self.cpu.pending_off_gvl);
        let mut blocked = Times::of(Mode::Wall, self.axes.flush(State::GvlBlocked));
        if self.mode == Mode::Wall && blocked.wall_ns > 0 {
            blocked.cpu_ns = off_gvl_cpu;
        } else {
            running.cpu_ns += off_gvl_cpu;
        }
        let wait = Times::of(Mode::Wall, self.axes.flush(State::GvlWait));
        let [marking, sweeping] = [State::GcMarking, State::GcSweeping].map(|state| {
            let unsampled = self.axes.flush(state);
            self.gc_times(state, unsampled)
        });
        running.cpu_ns = self.cpu.repay(running.cpu_ns);
        State::ALL
            .into_iter()
            .zip([running, blocked, wait, marking, sweeping])
            .filter(|(_, times)| !times.is_zero())
    }
}

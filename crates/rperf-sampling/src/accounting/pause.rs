//! Time that doesn't count: between the sections of a deferred session.

use super::{Accounting, Activity, Dues};
use crate::Mode;
use rperf_model::State;

impl Accounting {
    /// Whether its time counts: not before its first event, nor in a pause.
    pub fn counts(&self) -> bool {
        self.activity != Activity::Unknown
    }

    /// The last section ends: brings everything up to `now`, after which no time
    /// counts until the thread begins anew ([`Accounting::begin_running`],
    /// [`Accounting::begin_off_gvl`]; its CPU clock has to be told too). Remainders
    /// wait for later sections, as they do for later slices, so that many short
    /// sections make no more samples than a long one. But time in a state that
    /// the thread has had no sample in gets its point now, as its stack is still
    /// one of the section's.
    pub fn pause(&mut self, now: u64, ready: u64, cpu: impl FnOnce() -> Option<u64>) -> Dues {
        // The clock of another thread is dear to read. In wall mode it tells little
        // of a thread that did not run.
        let ran = matches!(self.activity, Activity::Running { .. }) || self.cpu.had_gvl();
        let cpu = (ran || self.mode == Mode::Cpu).then(cpu).flatten();
        let mut dues = self.advance_to(now, ready, cpu);
        self.activity = Activity::Unknown;
        self.blame.end();
        if self.has_remainder_without_place(&dues) {
            self.add_remainders(&mut dues);
        }
        dues
    }

    /// `dues` are about to be recorded: their samples give points.
    fn has_remainder_without_place(&mut self, dues: &Dues) -> bool {
        let has_cpu = self.cpu.pending_off_gvl > 0 || self.axes.has_unsampled(State::Running);
        let is_apart = self.mode == Mode::Cpu;
        let without_gvl = is_apart
            && has_cpu
            && self.points.without_gvl().is_none()
            && !dues.has_sample_without_gvl();
        without_gvl
            || State::ALL.into_iter().any(|state| {
                let has_unsampled = match state {
                    State::Running => !self.running.is_sampled() || (has_cpu && !is_apart),
                    state => self.axes.has_unsampled(state),
                };
                has_unsampled && self.last_point(state).is_none() && !dues.has_sample_in(state)
            })
    }
}

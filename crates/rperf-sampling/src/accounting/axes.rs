//! The axes of one thread on which sampling points lie, and what their intervals' changes
//! leave for the last samples.

use super::sample_point::SamplePoint;
use crate::accounting::renewal::Renewal;
use crate::timer::pace::Pace;
use rperf_model::State;
use rperf_vm::Dither;
use std::mem::{replace, take};

/// For each state by its number.
pub(super) type ByState<T> = [T; State::ALL.len()];

/// The axes: one for each state but running, and one of CPU time without the GVL.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Axes {
    // What every hand-over of the GVL touches comes first.
    /// The interval of the axes of time off the GVL.
    off_gvl_interval: u64,
    pub(super) blocked: Renewal,
    pub(super) wait: Renewal,
    /// CPU time used without the GVL (cpu mode): its state is running.
    pub(super) off_gvl_cpu: Renewal,
    pub(super) marking: Renewal,
    pub(super) sweeping: Renewal,
    gc_interval: u64,
    /// In each state what goes to the last sample, since intervals have become shorter. If it
    /// is negative, the next sample gets less, since they have become longer. Together with
    /// what the axis has unsampled it is all that no sample has taken.
    settled: ByState<i64>,
}

impl Axes {
    /// At their start.
    pub(super) fn new(pace: &Pace, dither: &mut Dither) -> Self {
        let (gc_interval, off_gvl_interval) = (pace.tick(), pace.off_gvl());
        let mut axis = |interval| Renewal::new(interval, dither);
        Self {
            off_gvl_interval,
            blocked: axis(off_gvl_interval),
            wait: axis(off_gvl_interval),
            off_gvl_cpu: axis(off_gvl_interval),
            marking: axis(gc_interval),
            sweeping: axis(gc_interval),
            gc_interval,
            settled: [0; State::ALL.len()],
        }
    }

    /// The interval in force off the GVL, which the axes now have. `points` are those of the
    /// thread's last samples.
    #[inline]
    pub(super) fn off_gvl_interval(
        &mut self,
        pace: &Pace,
        points: &ByState<Option<SamplePoint>>,
    ) -> u64 {
        let interval = pace.off_gvl();
        if interval != self.off_gvl_interval {
            let from = replace(&mut self.off_gvl_interval, interval);
            for state in [State::GvlBlocked, State::GvlWait] {
                self.stretch(state, from, interval, points);
            }
            // The last sample that runs is mostly one of a tick.
            self.off_gvl_cpu.stretch(from, interval);
        }
        interval
    }

    /// The interval in force in collections, which the axes now have. `points` are those of the
    /// thread's last samples.
    pub(super) fn gc_interval(
        &mut self,
        pace: &Pace,
        points: &ByState<Option<SamplePoint>>,
    ) -> u64 {
        let interval = pace.tick();
        if interval != self.gc_interval {
            let from = replace(&mut self.gc_interval, interval);
            for state in [State::GcMarking, State::GcSweeping] {
                self.stretch(state, from, interval, points);
            }
        }
        interval
    }

    #[cold]
    fn stretch(&mut self, state: State, from: u64, to: u64, points: &ByState<Option<SamplePoint>>) {
        self.of(state).stretch(from, to);
        // Before the first sample there is none that it could go to.
        if points[state as usize].is_some() {
            self.settled[state as usize] += self.of(state).stretch_unsampled(from, to);
        }
    }

    /// A point has been crossed in `state`, and `weight` is due. Returns what goes to the last
    /// sample, and what to this one.
    pub(super) fn settle(&mut self, state: State, weight: u64) -> (u64, u64) {
        let settled = &mut self.settled[state as usize];
        let less = weight.min(settled.unsigned_abs());
        if *settled < 0 {
            *settled += less as i64;
            (0, weight - less)
        } else {
            (take(settled) as u64, weight)
        }
    }

    /// Takes what no sample in `state` has taken.
    pub(super) fn flush(&mut self, state: State) -> u64 {
        let settled = take(&mut self.settled[state as usize]);
        self.of(state).flush().saturating_add_signed(settled)
    }

    /// Whether there is time in `state` that no sample has taken.
    pub(super) fn has_unsampled(&mut self, state: State) -> bool {
        self.settled[state as usize] > 0 || self.of(state).has_unsampled()
    }

    /// The axis of `state`; of running, the one of CPU time.
    pub(super) fn of(&mut self, state: State) -> &mut Renewal {
        match state {
            State::Running => &mut self.off_gvl_cpu,
            State::GvlBlocked => &mut self.blocked,
            State::GvlWait => &mut self.wait,
            State::GcMarking => &mut self.marking,
            State::GcSweeping => &mut self.sweeping,
        }
    }
}

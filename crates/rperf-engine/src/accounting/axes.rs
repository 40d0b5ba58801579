//! The axes of one thread on which sampling points lie, and what their intervals' changes
//! leave for the last samples.

use super::SamplePoint;
use crate::dither::Dither;
use crate::pace::Pace;
use crate::renewal::Renewal;
use rperf_model::State;
use std::mem::{replace, take};

/// For each state by its number.
pub(super) type ByState<T> = [T; State::ALL.len()];

/// One axis for each state but running, and one of CPU time.
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
    /// What goes to the last sample in each state, since intervals are shorter now.
    settled: ByState<u64>,
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
            self.off_gvl_cpu.stretch(from, interval, None);
        }
        interval
    }

    /// The same in collections.
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
        let mut settled = self.take_settled(state);
        let has_point = points[state as usize].is_some();
        self.of(state)
            .stretch(from, to, has_point.then_some(&mut settled));
        self.settled[state as usize] = settled;
    }

    /// What goes to the last sample in `state` before the next one comes.
    pub(super) fn take_settled(&mut self, state: State) -> u64 {
        take(&mut self.settled[state as usize])
    }

    /// Takes what no sample in `state` has taken.
    pub(super) fn flush(&mut self, state: State) -> u64 {
        let settled = self.take_settled(state);
        settled + self.of(state).flush()
    }

    /// Whether there is time in `state` that no sample has taken.
    pub(super) fn has_unsampled(&mut self, state: State) -> bool {
        self.settled[state as usize] > 0 || self.of(state).has_unsampled()
    }

    /// The axis of `state`; of running, the one of CPU time.
    fn of(&mut self, state: State) -> &mut Renewal {
        match state {
            State::Running => &mut self.off_gvl_cpu,
            State::GvlBlocked => &mut self.blocked,
            State::GvlWait => &mut self.wait,
            State::GcMarking => &mut self.marking,
            State::GcSweeping => &mut self.sweeping,
        }
    }
}

//! The axes of one thread on which sampling points lie, and what their intervals' changes
//! leave for the last samples.

use super::by_state::ByState;
use super::last_points::LastPoints;
use crate::accounting::renewal::Renewal;
use crate::timer::pace::Pace;
use rperf_model::State;
use rperf_vm::Dither;
use std::mem::{replace, take};
use std::sync::Arc;

/// The axes: one for each state but running, and one of CPU time without the GVL. Before one moves, its
/// interval becomes the one that is in force.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Axes {
    // What every hand-over of the GVL touches comes first.
    pace: Arc<Pace>,
    /// The interval of the axes of time off the GVL.
    off_gvl_interval: u64,
    blocked: Renewal,
    wait: Renewal,
    /// CPU time used without the GVL (cpu mode): its state is running.
    off_gvl_cpu: Renewal,
    marking: Renewal,
    sweeping: Renewal,
    gc_interval: u64,
    /// In each state what goes to the last sample, since intervals have become shorter. If it
    /// is negative, the next sample gets less, since they have become longer. Together with
    /// what the axis has unsampled it is all that no sample has taken.
    settled: ByState<i64>,
    dither: Dither,
}

impl Axes {
    /// The axes at their start.
    pub(super) fn new(pace: &Arc<Pace>, seed: u64) -> Self {
        let mut dither = Dither::new(seed);
        let (gc_interval, off_gvl_interval) = (pace.tick(), pace.off_gvl());
        let mut axis = |interval| Renewal::new(interval, &mut dither);
        Self {
            pace: Arc::clone(pace),
            off_gvl_interval,
            blocked: axis(off_gvl_interval),
            wait: axis(off_gvl_interval),
            off_gvl_cpu: axis(off_gvl_interval),
            marking: axis(gc_interval),
            sweeping: axis(gc_interval),
            gc_interval,
            settled: [0; State::ALL.len()],
            dither,
        }
    }

    /// The interval in force between ticks.
    #[inline]
    pub(super) fn tick_interval(&self) -> u64 {
        self.pace.tick()
    }

    /// Moves the axes of time off the GVL by so many ns that a thread was `blocked`, and then waited.
    /// Returns the weights that are due of both. `points` are those of the thread's last samples.
    #[inline]
    pub(super) fn advance_off_gvl(
        &mut self,
        blocked: u64,
        waited: u64,
        points: &LastPoints,
    ) -> (u64, u64) {
        let interval = self.off_gvl_interval(points);
        let blocked = self.blocked.advance(blocked, interval, &mut self.dither);
        let wait = self.wait.advance(waited, interval, &mut self.dither);
        (blocked, wait)
    }

    /// Moves the axis of CPU time without the GVL. Returns the weight that is due.
    #[inline]
    pub(super) fn advance_off_gvl_cpu(&mut self, cpu_ns: u64, points: &LastPoints) -> u64 {
        let interval = self.off_gvl_interval(points);
        self.off_gvl_cpu.advance(cpu_ns, interval, &mut self.dither)
    }

    /// Moves the axis of `state`, in a collection. Returns the weight that is due.
    pub(super) fn advance_gc(&mut self, state: State, length: u64, points: &LastPoints) -> u64 {
        let interval = self.gc_interval(points);
        let axis = match state {
            State::GcMarking => &mut self.marking,
            _ => &mut self.sweeping,
        };
        axis.advance(length, interval, &mut self.dither)
    }

    /// The interval in force off the GVL, which the axes now have. `points` are those of the
    /// thread's last samples.
    #[inline]
    fn off_gvl_interval(&mut self, points: &LastPoints) -> u64 {
        let interval = self.pace.off_gvl();
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
    fn gc_interval(&mut self, points: &LastPoints) -> u64 {
        let interval = self.pace.tick();
        if interval != self.gc_interval {
            let from = replace(&mut self.gc_interval, interval);
            for state in [State::GcMarking, State::GcSweeping] {
                self.stretch(state, from, interval, points);
            }
        }
        interval
    }

    #[cold]
    fn stretch(&mut self, state: State, from: u64, to: u64, points: &LastPoints) {
        self.of(state).stretch(from, to);
        // Before the first sample there is none that it could go to.
        if points.in_state(state).is_some() {
            self.settled[state as usize] += self.of(state).stretch_unsampled(from, to);
        }
    }

    /// A point has been crossed in `state`, and `weight` is due. Returns what goes to the last
    /// sample, and what to this one: something always does. Where `settled` is negative, it was taken
    /// from time that has passed since the last point, so the weight is as much and that time.
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

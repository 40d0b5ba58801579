//! The accounting of one Ruby thread: every nanosecond of its life once, at a
//! bounded number of samples. Pure arithmetic on times handed in, which returns what is
//! due to be recorded; the bridge calls it under the GVL (docs/internals/accounting.md
//! has the rules and their reasons).

use crate::tick_capture::TickTimes;
use crate::timer::pace::Pace;
use crate::{Mode, Times, Values};
use rperf_model::State;
use std::sync::Arc;

mod activity;
mod axes;
mod blame;
mod blaming;
mod by_state;
mod cpu_clock;
mod cpu_split;
mod due;
mod gc;
mod last_points;
mod left_by_gc;
mod pause;
mod remainders;
pub(crate) mod renewal;
mod running_time;
mod sample_point;
#[cfg(test)]
mod tests;
mod tick_marks;

use activity::Activity;
pub use activity::Began;
use axes::Axes;
use blame::Blame;
use cpu_split::CpuSplit;
pub use due::{Due, Dues};
use last_points::LastPoints;
use left_by_gc::LeftByGc;
use running_time::RunningTime;
pub use sample_point::SamplePoint;
use tick_marks::TickMarks;

/// The seq under which the time of threads without any stack is recorded.
pub const UNATTRIBUTED: u32 = 0;

/// The accounting of one thread. All times are CLOCK_MONOTONIC in ns; `cpu` closures read the
/// thread's CPU clock and are called only where a sample needs it.
#[derive(Debug)]
#[repr(C)]
pub struct Accounting {
    // What every hand-over of the GVL touches comes first and lies together.
    seq: u32,
    mode: Mode,
    activity: Activity,
    running: RunningTime,
    cpu: CpuSplit,
    axes: Axes,
    blame: Blame,
    // Ticks and collections touch the rest.
    ticks: TickMarks,
    gc: LeftByGc,
    points: LastPoints,
}

impl Accounting {
    /// A thread with number `seq` that has not been seen doing anything yet and
    /// whose CPU clock stands at `cpu_base`.
    pub fn new(seq: u32, mode: Mode, pace: &Arc<Pace>, cpu_base: u64, seed: u64) -> Self {
        Self {
            seq,
            mode,
            activity: Activity::Unknown,
            running: RunningTime::default(),
            cpu: CpuSplit::new(cpu_base),
            axes: Axes::new(pace, seed),
            blame: Blame::default(),
            ticks: TickMarks::default(),
            gc: LeftByGc::default(),
            points: LastPoints::default(),
        }
    }

    /// The thread's number in the profile.
    #[inline]
    pub fn seq(&self) -> u32 {
        self.seq
    }

    /// Whether any stack of the thread was recorded.
    pub fn was_sampled(&self) -> bool {
        self.points.was_sampled()
    }

    /// The points known so far are no longer valid: an epoch has ended.
    pub fn forget_points(&mut self) {
        self.points.forget();
    }

    /// The thread runs as the session starts, or a sampling callback finds it
    /// running before any event told of it.
    pub fn begin_running(&mut self, now: u64) {
        self.activity = Activity::Running {
            since: now,
            resumed: now,
        };
    }

    /// The thread is off the GVL as the session starts, or is new.
    pub fn begin_off_gvl(&mut self, now: u64) {
        self.blame.end();
        self.activity = Activity::off(now, true);
    }

    /// The native thread below has run another Ruby thread since, so the CPU
    /// clock says nothing: what ran with the GVL counts as CPU time instead.
    pub fn moved_to_native_thread(&mut self, cpu_now: u64) {
        self.running.add_cpu(self.cpu.change_clock(cpu_now));
    }

    /// RESUMED: the thread got the GVL at `now`; `ready` is when READY was seen
    /// since the last SUSPENDED, or 0. Mostly nothing is due: then nothing as large as
    /// [`Dues`] is moved.
    #[inline]
    pub fn resumed(&mut self, now: u64, ready: u64, cpu: impl FnOnce() -> u64) -> Option<Dues> {
        let before = self.activity;
        self.activity = Activity::Running {
            since: now,
            resumed: now,
        };
        let Activity::Off { since, .. } = before else {
            return None;
        };
        let mut dues = Dues::default();
        self.off_gvl(since, ready, now, cpu, &mut dues);
        if dues.is_empty() {
            return None;
        }
        Some(dues)
    }

    /// SUSPENDED: the thread is about to give the GVL up. No sample: the slice
    /// waits for the next tick. Without RESUMED before it (an interrupted sleep)
    /// the time off the GVL goes on.
    #[inline]
    pub fn suspended(&mut self, now: u64) {
        match self.activity {
            Activity::Running { since, .. } => self.close_slice(since, now),
            Activity::Unknown => {}
            Activity::Off { .. } => return,
        }
        self.activity = Activity::off(now, false);
        self.blame.end();
    }

    /// When the thread gave the GVL up; `None` if it has it, or doesn't count.
    pub fn off_gvl_began(&self) -> Option<Began> {
        match self.activity {
            Activity::Off { began, .. } => Some(began),
            _ => None,
        }
    }

    /// Whether the thread runs, as far as the events have told.
    pub fn is_running(&self) -> bool {
        matches!(self.activity, Activity::Running { .. })
    }

    /// The sampling callback for the tick at `tick` runs at `now` on this thread, which
    /// makes one sample at most. If no event has told that it runs, it does from now on,
    /// and what is due is of the time before; `ready` as in [`Accounting::resumed`].
    pub fn sample(&mut self, now: u64, tick: u64, ready: u64, cpu: impl FnOnce() -> u64) -> Dues {
        self.sample_ticks(1, now, tick, ready, cpu)
    }

    /// The stacks that `ticks` ticks in a row have found, all the same one: `times` are
    /// those of the last. The events after it must not have been told yet: so this is
    /// what [`Accounting::sample`] would have done then and there.
    pub fn replay(&mut self, ticks: u64, times: TickTimes) -> Dues {
        let TickTimes {
            tick_ns,
            now_ns,
            cpu_ns,
            waits,
        } = times;
        self.blame_at_tick(waits);
        self.sample_ticks(ticks, now_ns, tick_ns, 0, || cpu_ns)
    }

    fn sample_ticks(
        &mut self,
        ticks: u64,
        now: u64,
        tick: u64,
        ready: u64,
        cpu: impl FnOnce() -> u64,
    ) -> Dues {
        let Activity::Running { since, resumed } = self.activity else {
            return self.resumed(now, ready, cpu).unwrap_or_default();
        };
        let mut dues = Dues::default();
        let tick = self.ticks.meant_by(tick);
        // Older than the slice: the thread did not run at the tick. Not newer
        // than the last one: that tick has its sample.
        if tick < resumed || self.ticks.are_sampled_to(tick) {
            return dues;
        }
        self.close_slice(since, now);
        self.activity = Activity::Running {
            since: now,
            resumed,
        };
        self.take_cpu(cpu());
        let late = now.saturating_sub(tick);
        let late = late.saturating_sub(self.ticks.gc_since(tick));
        let Some(mut times) = self.running.take_until_tick(late, self.mode) else {
            return dues;
        };
        self.ticks.note_sampled(tick);
        times.blame_ns = self.blame.take_sampled(times.wall_ns);
        let count = ticks;
        dues.add_sample(State::Running, Values { count, times });
        dues
    }

    /// Brings everything up to `now`; all remainders are due, at the thread's current
    /// stack where it has had no sample. Afterwards the thread goes on as before. For
    /// stop and snapshot; `cpu` is the thread's CPU clock if known.
    pub fn flush(&mut self, now: u64, ready: u64, cpu: Option<u64>) -> Dues {
        let mut dues = self.advance_to(now, ready, cpu);
        self.add_remainders(&mut dues);
        dues
    }

    /// Brings everything up to `now`.
    fn advance_to(&mut self, now: u64, ready: u64, cpu: Option<u64>) -> Dues {
        let mut dues = Dues::default();
        match self.activity {
            // An event may have come after `now`: time doesn't go back.
            Activity::Running { since, resumed } => {
                let now = now.max(since);
                self.close_slice(since, now);
                self.activity = Activity::Running {
                    since: now,
                    resumed,
                };
            }
            Activity::Off { since, began } => {
                let now = now.max(since);
                let estimate = self.cpu.estimate();
                self.off_gvl(since, ready, now, || cpu.unwrap_or(estimate), &mut dues);
                self.activity = Activity::Off { since: now, began };
            }
            Activity::Unknown => {}
        }
        self.take_cpu(cpu.unwrap_or_else(|| self.cpu.estimate()));
        dues
    }

    /// Adds the slice `since..now` to the pending running time.
    #[inline]
    fn close_slice(&mut self, since: u64, now: u64) {
        let slice = now.saturating_sub(since);
        self.cpu.with_gvl += slice;
        self.running.close_slice(slice, self.mode);
    }

    /// Accounts the time off the GVL from `since` to `now`.
    #[inline]
    fn off_gvl(
        &mut self,
        since: u64,
        ready: u64,
        now: u64,
        cpu: impl FnOnce() -> u64,
        dues: &mut Dues,
    ) {
        let length = now.saturating_sub(since);
        self.cpu.without_gvl += length;
        if self.mode == Mode::Cpu {
            // Only a long time off the GVL can hide CPU time worth a sample.
            if self.cpu.without_gvl > self.axes.tick_interval() / 2 {
                self.take_cpu(cpu());
                let off_gvl = std::mem::take(&mut self.cpu.pending_off_gvl);
                let weight = self.axes.advance_off_gvl_cpu(off_gvl, &self.points);
                if weight > 0 {
                    dues.add_sample_without_gvl(Times::of(Mode::Cpu, weight));
                }
            }
            return;
        }
        // READY older than the segment belongs to one that is accounted already.
        let ready = if ready == 0 {
            now
        } else {
            ready.clamp(since, now.max(since))
        };
        let waited = now.saturating_sub(ready);
        let (blocked, wait) = self
            .axes
            .advance_off_gvl(ready - since, waited, &self.points);
        if blocked > 0 {
            self.take_cpu(cpu());
            let cpu_ns = std::mem::take(&mut self.cpu.pending_off_gvl);
            self.add_off_gvl(State::GvlBlocked, blocked, cpu_ns, dues);
        }
        if wait > 0 {
            self.add_off_gvl(State::GvlWait, wait, 0, dues);
        }
    }

    /// A point has been crossed off the GVL, in wall mode.
    fn add_off_gvl(&mut self, state: State, weight: u64, cpu_ns: u64, dues: &mut Dues) {
        let (settled, weight) = self.axes.settle(state, weight);
        let mut times = Times::of(Mode::Wall, weight);
        times.cpu_ns = cpu_ns;
        self.add(state, Times::of(Mode::Wall, settled), times, dues);
        dues.note_off_gvl();
    }

    /// Adds what goes to the last sample in `state`, and the next one.
    fn add(&self, state: State, settled: Times, times: Times, dues: &mut Dues) {
        if !settled.is_zero() {
            dues.add_remainder(state, settled, self.last_point(state).is_some());
        }
        if !times.is_zero() {
            dues.add_sample(state, Values { count: 1, times });
        }
    }

    /// Where the thread's last sample in `state` was recorded.
    pub(crate) fn last_point(&self, state: State) -> Option<SamplePoint> {
        self.points.in_state(state)
    }

    /// Where the thread's last sample of the kind of `due` was recorded.
    pub(crate) fn last_point_of(&self, due: &Due) -> Option<SamplePoint> {
        self.points.of(due)
    }

    /// A sample, `due`, was recorded at `point`. Returns whether it is the thread's first one in its
    /// state.
    pub(crate) fn recorded_at(&mut self, point: SamplePoint, due: &Due) -> bool {
        self.points.note(point, due)
    }
}

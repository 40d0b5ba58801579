//! How many stacks a session takes, and what they may cost: lengthens the intervals where
//! there is too much, and shortens them again. Kept by the session, with the GVL, after
//! samples; so nothing here is on the way of a hook that records nothing.

use crate::counters::StackCounts;
use crate::timer::pace::Pace;
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Stacks that the threads may take together for their time off the GVL, per interval.
const STACKS_PER_INTERVAL: f64 = 3.0;

/// In intervals: the stretch of time over which stacks are counted.
const WINDOW: u64 = 64;

/// Intervals lengthen from this part of what is allowed on, and shorten below that one. In
/// between they stay, so that chance changes nothing.
const MANY: f64 = 1.25;
const FEW: f64 = 0.6;

/// The number of stacks that ends this stretch of time early.
const MOST_STACKS: u64 = (MANY * STACKS_PER_INTERVAL * WINDOW as f64) as u64;

/// How far one step lengthens the gaps off the GVL at most.
const STEP: f64 = 4.0;

/// In intervals off the GVL: how long it takes until they are half as long.
const HALF: f64 = 4.0;

/// Intervals off the GVL are as many times those between ticks at most.
const MOST_STRETCH: f64 = 65_536.0;

/// In ns: how long the cost of sampling is counted before it is judged.
const COST_WINDOW: u64 = 250_000_000;

/// In ns: what a stack costs at most. One that took longer was preempted meanwhile.
const MOST_PER_STACK: u64 = 100_000;

/// The part of one CPU that sampling may always take: nobody notices what a nearly idle program
/// pays.
const FREE: f64 = 0.01;

/// How far one step changes all intervals for their cost.
const COST_STEP: f64 = 2.0;

/// All intervals are lengthened as many times at most.
const MOST_COST_STRETCH: f64 = 100.0;

/// From this limit, in percent, there is none.
pub const NO_LIMIT: u32 = 100;

/// Two rules. Stacks of threads that come back to the GVL: if they are too many, the interval
/// off the GVL lengthens. The time spent on all sampling: if it is too large a part of the
/// program's CPU time, all intervals do. Both go by sums over many samples of all
/// threads: what one stack is like decides nothing, and so no stack is favoured.
#[derive(Debug)]
pub(crate) struct Budget {
    pace: Arc<Pace>,
    /// The interval asked for, in ns.
    interval: u64,
    /// The sampling time that is allowed, as a part of the program's CPU time.
    max_overhead: Option<f64>,
    /// How many times the interval between ticks the one off the GVL is.
    stretch: f64,
    /// How many times the interval asked for the one between ticks is.
    cost_stretch: f64,
    /// Since when stacks have been counted, and how many there were.
    since: u64,
    stacks: u64,
    /// The time before, and its stacks: many threads that wake up at once after a rest are
    /// not too many.
    before: (u64, u64),
    /// When the cost was judged last, the CPU time of the process then, and sampling time since.
    cost_since: u64,
    cpu_since: u64,
    spent: u64,
    longest: Intervals,
}

/// Intervals in force, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Intervals {
    /// The interval between ticks, and of GC time.
    pub tick_ns: u64,
    /// The interval of each thread's time off the GVL.
    pub off_gvl_ns: u64,
}

impl Budget {
    /// From `now` on, in a process that has used so much CPU time; `max_overhead` in percent.
    pub(crate) fn new(interval: u64, max_overhead: u32, now: u64, cpu: u64) -> Self {
        let asked = Intervals {
            tick_ns: interval,
            off_gvl_ns: interval,
        };
        Self {
            pace: Arc::new(Pace::new(interval)),
            interval,
            max_overhead: (max_overhead < NO_LIMIT).then_some(f64::from(max_overhead) / 100.0),
            stretch: 1.0,
            cost_stretch: 1.0,
            since: now,
            stacks: 0,
            before: (0, 0),
            cost_since: now,
            cpu_since: cpu,
            spent: 0,
            longest: asked,
        }
    }

    /// The intervals, for who reads them.
    pub(crate) fn pace(&self) -> &Arc<Pace> {
        &self.pace
    }

    /// The longest intervals that have been in force.
    pub(crate) fn longest(&self) -> Intervals {
        self.longest
    }

    /// Forgets the longest intervals so far: they are another profile's.
    pub(crate) fn forget_longest(&mut self) {
        self.longest = self.in_force();
    }

    /// The intervals in force.
    pub(crate) fn in_force(&self) -> Intervals {
        Intervals {
            tick_ns: self.pace.tick(),
            off_gvl_ns: self.pace.off_gvl(),
        }
    }

    /// By `now` these `stacks` were taken as well, in `spent` ns, and those that other Ractors' hooks
    /// have noted. `cpu` reads the process' CPU
    /// clock.
    pub(crate) fn count(
        &mut self,
        now: u64,
        stacks: StackCounts,
        spent: u64,
        cpu: impl FnOnce() -> u64,
    ) {
        let (of_others, spent_by_others) = self.pace.take_others();
        let off_gvl = stacks.off_gvl + of_others;
        let all = stacks.running + off_gvl;
        self.stacks += off_gvl;
        self.spent += (spent + spent_by_others).min(MOST_PER_STACK * all.max(1));
        let passed = now.saturating_sub(self.since).max(1);
        if self.stacks >= MOST_STACKS || passed >= WINDOW * self.pace.tick() {
            self.judge_stacks(passed);
            self.since = now;
            self.stacks = 0;
        }
        let passed = now.saturating_sub(self.cost_since);
        if passed >= COST_WINDOW
            && let Some(most) = self.max_overhead
        {
            let cpu = cpu();
            let used = cpu.saturating_sub(self.cpu_since);
            self.judge_cost((most * used as f64).max(FREE * passed as f64));
            (self.cost_since, self.cpu_since, self.spent) = (now, cpu, 0);
        }
    }

    fn judge_stacks(&mut self, passed: u64) {
        let now = (passed, self.stacks);
        let before = std::mem::replace(&mut self.before, now);
        let intervals = |ns: u64| ns as f64 / self.pace.tick() as f64;
        let allowed = STACKS_PER_INTERVAL * intervals(passed + before.0);
        let part = (self.stacks + before.1) as f64 / allowed;
        let step = if part >= MANY {
            self.before = (0, 0);
            part.min(STEP)
        } else if part < FEW && self.stretch > 1.0 {
            // One half in the time in which a thread that is off the GVL has some samples: what
            // is sampled coarsely and what is sampled finely mix badly.
            let half = (HALF * self.stretch).max(WINDOW as f64);
            part.max(0.5f64.powf(intervals(passed) / half))
        } else {
            return;
        };
        self.stretch = (self.stretch * step).clamp(1.0, MOST_STRETCH);
        self.set_pace();
    }

    fn judge_cost(&mut self, allowed: f64) {
        let part = self.spent as f64 / allowed;
        let step = if part > 1.0 {
            part.min(COST_STEP)
        } else if part < FEW && self.cost_stretch > 1.0 {
            part.max(1.0 / COST_STEP)
        } else {
            return;
        };
        self.cost_stretch = (self.cost_stretch * step).clamp(1.0, MOST_COST_STRETCH);
        self.set_pace();
    }

    fn set_pace(&mut self) {
        let tick = self.interval as f64 * self.cost_stretch;
        let off_gvl = tick * self.stretch;
        self.pace.set(tick as u64, off_gvl as u64);
        let now = self.in_force();
        self.longest = Intervals {
            tick_ns: self.longest.tick_ns.max(now.tick_ns),
            off_gvl_ns: self.longest.off_gvl_ns.max(now.off_gvl_ns),
        };
    }
}

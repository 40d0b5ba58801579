//! When ticks are due: the schedule that all timers follow, on the worker and in its
//! signal handler.

use crate::timer::pace::Pace;
use rperf_vm::{Dither, clock};
use std::sync::Arc;

/// Random deadlines. The next one counts from the last one's nominal time, not
/// from when it was handled, so that lateness doesn't lower the frequency.
///
/// While one thread runs on and on, gaps are drawn evenly around the interval:
/// the running time is one unbroken axis, and this has the least noise. Once a
/// thread has given the GVL up, running time comes in slices, and a slice's time
/// waits for the next tick that falls into one. Then the gaps are memoryless: with
/// any other distribution a tick late in a slice would find more time waiting than
/// one early in it, and late code would get the time of early code (up to 11 % of
/// it with slices of 0.3 ms between sleeps; see the accounting's tests).
#[derive(Debug)]
pub struct Schedule {
    pace: Arc<Pace>,
    dither: Dither,
    deadline: u64,
    /// What was left of a gap when the timer was stopped; 0 if it wasn't.
    left: u64,
}

impl Schedule {
    pub fn new(pace: Arc<Pace>, seed: u64) -> Self {
        Self {
            pace,
            dither: Dither::new(seed),
            deadline: 0,
            left: 0,
        }
    }

    /// The mean gap between ticks.
    pub fn interval(&self) -> u64 {
        self.pace.tick()
    }

    /// The timer is stopped at `now`: a gap that isn't over goes on after the rest.
    pub fn stop(&mut self, now: u64) {
        self.left = self.deadline.saturating_sub(now);
    }

    /// The first deadline after a rest, which ends as a thread gets the GVL.
    pub fn restart(&mut self) -> u64 {
        let left = match std::mem::take(&mut self.left) {
            0 => self.gap(true),
            left => left,
        };
        self.deadline = clock::monotonic_ns() + left;
        self.deadline
    }

    /// The deadline after the one that has passed; missed ones are skipped.
    /// `in_slices`: as [`AfterTick::GoOn`](crate::timer::ticks::AfterTick) says.
    pub fn advance(&mut self, in_slices: bool) -> u64 {
        let now = clock::monotonic_ns();
        self.deadline += self.gap(in_slices);
        if self.deadline <= now {
            self.deadline = now + self.gap(in_slices);
        }
        self.deadline
    }

    pub fn gap(&mut self, in_slices: bool) -> u64 {
        let interval = self.pace.tick();
        if in_slices {
            self.dither.memoryless_gap(interval)
        } else {
            self.dither.gap(interval)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_goes_on_after_a_rest_for_which_the_timer_was_stopped() {
        let mut schedule = Schedule::new(Arc::new(Pace::new(1_000_000_000)), 3);
        let first = schedule.restart();
        let stopped = first - 700;
        schedule.stop(stopped);
        let now = clock::monotonic_ns();
        let next = schedule.restart();
        assert!((now + 700..=clock::monotonic_ns() + 700).contains(&next));
        // One that is over is followed by another one.
        schedule.stop(next + 5);
        let mean = (0..1000).map(|_| {
            let now = clock::monotonic_ns();
            let gap = schedule.restart() - now;
            schedule.stop(u64::MAX);
            gap as f64 / 1000.0
        });
        let mean: f64 = mean.sum();
        assert!((mean - 1e9).abs() < 2e8, "mean {mean}");
    }

    #[test]
    fn deadlines_average_the_interval_and_never_lie_in_the_past() {
        let mut schedule = Schedule::new(Arc::new(Pace::new(1_000_000_000)), 3);
        let start = clock::monotonic_ns();
        let first = schedule.restart();
        assert!((start..start + 40_000_000_000).contains(&first));
        let last = (0..1000)
            .map(|_| schedule.advance(false))
            .last()
            .expect("a thousand");
        let mean = (last - first) as f64 / 1000.0;
        assert!((mean - 1e9).abs() < 5e7, "mean {mean}");
        let mut late = Schedule::new(Arc::new(Pace::new(1)), 3);
        late.restart();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(late.advance(true) >= clock::monotonic_ns() - 1_000_000);
    }
}
